"""The commands of services, for the shells of agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from operant.ext.services.keeper import Keeper
from operant.ext.services.tools import caller_of
from operant.ext.services.wire import CommandAnswer, CommandCalled
from operant.sdk import Agent, CallContext, NotFound, Printed, Typed

RESERVED = frozenset(("skill", "a2a", "memory"))
"""Commands of Operant itself."""


class ServiceCommands:
    """The commands of the services that run."""

    def __init__(self) -> None:
        self._keepers: dict[str, dict[str, Keeper]] = {}
        self._words: dict[str, dict[str, str]] = {}

    def offer(self, keepers: Iterable[tuple[Keeper, str]]) -> None:
        """Offer these from now on; each service stands with the agent whose own it is, or an empty name."""
        self._keepers, self._words = {}, {}
        for keeper, agent in keepers:
            current = keeper.current
            for offered in current.register.commands if current and current.register else ():
                if offered.name not in RESERVED:
                    self._keepers.setdefault(agent, {}).setdefault(offered.name, keeper)
                    self._words.setdefault(agent, {}).setdefault(offered.name, offered.description)

    def commands(self, agent: Agent) -> Mapping[str, str]:
        """Return an agent's commands."""
        return {**self._words.get("", {}), **self._words.get(agent.name, {})}

    async def run(self, call: CallContext, words: Typed) -> Printed:
        """Have the service do it. Raises `NotFound`, `Unavailable` or `Invalid`."""
        own, shared = self._keepers.get(call.agent.name, {}), self._keepers.get("", {})
        keeper = own.get(words.name) or shared.get(words.name)
        if keeper is None:
            raise NotFound(f"There is no command {words.name!r}.")
        generation = await keeper.serving(call.session)
        asked = CommandCalled(name=words.name, arguments=words.arguments, input=words.input, call=caller_of(call))
        answer: CommandAnswer = await generation.ask("command", asked, CommandAnswer)
        return Printed(output=answer.output, error=answer.error, code=answer.code)
