"""The places of a service at the hook points: they stay while it is down, and then its guards refuse."""

from __future__ import annotations

from typing import Any

import msgspec

from operant.ext.services.declared import point_of
from operant.ext.services.keeper import Keeper
from operant.ext.services.wire import HookAnswer, HookWanted, Told
from operant.sdk import (
    SERVICE_START_BEFORE,
    Allow,
    Ask,
    Happened,
    Invalid,
    OperantError,
    Plain,
    Point,
    Record,
    Registration,
    Reject,
)

Handlers = list[tuple[Point[Any, Any], Registration]]


class Slots:
    """The handlers of one service; each stays the same object, so that the kernel knows it inside itself."""

    def __init__(self, keeper: Keeper, agent: str) -> None:
        self._keeper = keeper
        self._agent = agent
        self._slots: dict[tuple[str, str], Slot] = {}

    def handlers(self, hooks: tuple[HookWanted, ...], events: tuple[str, ...]) -> Handlers:
        """Return the handlers for what a service wants. Raises `Invalid` for points that there are not."""
        return [self._handler(one) for one in (*hooks, *(HookWanted(point=event) for event in events))]

    def _handler(self, wanted: HookWanted) -> tuple[Point[Any, Any], Registration]:
        point: Point[Any, Any] = point_of(wanted.point)
        key = (wanted.point, wanted.phase)
        slot = self._slots.setdefault(key, Slot(self._keeper, point, wanted.phase))
        slot.agents = (self._agent,) if self._agent else wanted.agents
        slot.open = (wanted.fail or ("closed" if point.kind == "gate" else "open")) == "open"
        registration = Registration(
            point=point.name,
            author=self._keeper.name,
            handler=slot.ask,
            phase=wanted.phase,
            tier="agent" if self._agent else "system",
            priority=wanted.priority,
            fail="open" if slot.open else "closed",
            timeout_s=wanted.timeout_s,
            tools=wanted.tools,
            agents=slot.agents,
        )
        return point, registration


class Slot:
    """One place at one point."""

    def __init__(self, keeper: Keeper, point: Point[Any, Any], phase: str) -> None:
        self._keeper = keeper
        self._point = point
        self._phase = phase
        self.open = False
        self.agents: tuple[str, ...] = ()

    async def ask(self, input: Record, output: Record | None) -> object:
        """Ask the service; in a turn, the version that the turn began with."""
        if self.agents and _agent(input) not in (*self.agents, None):
            return None  # the kernel asks that only at gates and transforms
        if self._point.kind == "event":
            return self._tell(input)
        if self._point is SERVICE_START_BEFORE and self._keeper.current is None:
            return None  # else none that is down could ever start
        try:
            generation = await self._keeper.serving(_session(input))
            if (self._point.name, self._phase) not in generation.asks:
                return None
            answer = await generation.hook(self._point.name, input, output)
        except OperantError:
            if self._point.kind == "provider" and self.open:
                return None  # whoever is next answers
            raise
        return None if answer is None else self._meant(answer, output)

    def _tell(self, input: Record) -> None:
        current = self._keeper.current
        if current is not None and current.alive:
            current.tell("event", Told(point=self._point.name, input=input))

    def _meant(self, answer: HookAnswer, output: Record | None) -> object:
        if answer.verdict == "reject":
            return Reject(reason=answer.reason or f"{self._keeper.name} refuses it.")
        if answer.verdict == "ask":
            return Ask(question=answer.question)
        if answer.output is None:
            return Allow() if answer.verdict == "allow" else None
        known = {field.encode_name for field in msgspec.structs.fields(self._point.output)}
        strange = sorted(set(answer.output) - known)
        if strange:
            raise Invalid(f"The output of {self._point.name} has no {', '.join(strange)}.")
        before: dict[str, Any] = msgspec.to_builtins(output) if output is not None else {}
        return {**before, **answer.output}


def _agent(input: Record) -> str | None:
    """Return the agent that something is about: empty when that is not said, None when it is about none."""
    if isinstance(input, Plain):
        return None
    agent = getattr(input, "agent", None)
    if isinstance(input, Happened):
        agent = getattr(input.event.body, "agent", "") or input.event.actor.removeprefix("agent:")
    return agent if isinstance(agent, str) else str(getattr(agent, "name", ""))


def _session(input: Record) -> str:
    session = getattr(input, "session", "")
    return session if isinstance(session, str) else str(getattr(session, "key", ""))
