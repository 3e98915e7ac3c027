"""The tools of services, as the gate sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from operant.ext.services.keeper import Keeper
from operant.ext.services.wire import Caller, ToolAnswer, ToolCalled, ToolOffered
from operant.kit.schema import misfit
from operant.sdk import (
    Agent,
    CallContext,
    Invalid,
    Json,
    OperantError,
    Output,
    Text,
    Tool,
    ToolResult,
    ToolSpec,
    failed,
)

OUTSIDE = "outside"
"""Label of results whose text somebody else wrote; models are shown them as data."""


class ServiceTool:
    """One tool of a service."""

    def __init__(self, keeper: Keeper, offered: ToolOffered) -> None:
        self._keeper = keeper
        self.spec = ToolSpec(
            name=offered.name,
            description=offered.description,
            schema=offered.schema or {"type": "object", "properties": {}},
            effect=offered.effect,
            timeout_s=offered.timeout_s,
            deferred=offered.deferred,
        )

    def check(self, arguments: Json) -> Json:
        """Return the arguments. Raises `Invalid`."""
        wrong = misfit(self.spec.schema, arguments)
        if wrong:
            raise Invalid(f"The arguments do not fit {self.spec.name}: {wrong}.")
        return arguments

    async def run(self, call: CallContext, arguments: Json, output: Output) -> ToolResult:
        """Have the service do it."""
        asked = ToolCalled(name=self.spec.name, arguments=arguments, call=caller_of(call))
        try:
            generation = await self._keeper.serving(call.session)
            answer: ToolAnswer = await generation.ask("tool", asked, ToolAnswer, output)
        except OperantError as error:
            return failed(f"{self.spec.name} failed: {error.line()}")
        return ToolResult(parts=(Text(text=answer.text),), outcome=answer.outcome, labels=(OUTSIDE,))


class ServiceTools:
    """The toolbox: all tools of the services that run or are enabled."""

    def __init__(self) -> None:
        self._shared: dict[str, Tool] = {}
        self._own: dict[str, dict[str, Tool]] = {}
        self._names: dict[str, frozenset[str]] = {}

    def offer(self, keepers: Iterable[tuple[Keeper, str]]) -> None:
        """Offer these from now on; each service stands with the agent whose own it is, or an empty name."""
        self._shared, self._own, self._names = {}, {}, {}
        for keeper, agent in keepers:
            current = keeper.current
            there = self._own.setdefault(agent, {}) if agent else self._shared
            wanted = current.register.tools if current and current.register else ()
            self._names[keeper.name] = frozenset(one.name for one in wanted)
            for offered in wanted:
                there.setdefault(offered.name, ServiceTool(keeper, offered))

    def of(self, service: str) -> frozenset[str]:
        """Return the names of the tools that a service has now."""
        return self._names.get(service, frozenset())

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, Tool]:
        """Return an agent's tools."""
        own = self._own.get(agent.name)
        return {**own, **self._shared} if own else self._shared


def caller_of(call: CallContext) -> Caller:
    """Say where a call comes from."""
    return Caller(
        call_id=call.call_id,
        session=call.session,
        turn=call.turn,
        agent=call.agent.name,
        key=call.key,
        repeated=call.repeated,
    )
