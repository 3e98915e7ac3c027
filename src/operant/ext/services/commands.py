"""The commands of services, for the shells of agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from operant.ext.services.keeper import Keeper
from operant.ext.services.tools import caller_of
from operant.ext.services.wire import CommandAnswer, CommandCalled, CommandOffered
from operant.sdk import Agent, CallContext, NotFound, Printed, Typed

RESERVED = frozenset(("skill", "a2a", "memory"))
"""Commands of Operant itself."""


class ServiceCommands:
    """The commands of the services that run."""

    def __init__(self) -> None:
        self._keepers: dict[str, dict[str, Keeper]] = {}
        self._words: dict[str, dict[str, str]] = {}
        self._lost: dict[str, list[str]] = {}

    def offer(self, keepers: Iterable[tuple[Keeper, str]]) -> None:
        """Offer these from now on; each service stands with the agent whose own it is, or an empty name."""
        self._keepers, self._words, self._lost = {}, {}, {}
        for keeper, agent in keepers:
            current = keeper.current
            for offered in current.register.commands if current and current.register else ():
                self._take(keeper, agent, offered)

    def of(self, keeper: Keeper) -> tuple[str, ...]:
        """Return the commands that a service has."""
        return tuple(name for mine in self._keepers.values() for name, one in mine.items() if one is keeper)

    def lost(self, service: str) -> tuple[str, ...]:
        """Say of each command that a service offers and nobody gets why that is, and what to do."""
        return tuple(self._lost.get(service, ()))

    def _take(self, keeper: Keeper, agent: str, offered: CommandOffered) -> None:
        name, mine = offered.name, self._keepers.setdefault(agent, {})
        lost = ""
        if name in RESERVED:
            lost = f"its command {name} is one of Operant's own: rename it"
        elif mine.setdefault(name, keeper) is not keeper:
            first = mine[name].name
            lost = f"its command {name} goes to {first}, which has it too: rename it in one of them, or stop one"
        if lost:
            self._lost.setdefault(keeper.name, []).append(lost)
        else:
            self._words.setdefault(agent, {})[name] = offered.description

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
