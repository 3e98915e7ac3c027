"""A host that policies register with, and that calls their handlers in the kernel's order."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from operant.kit.http import Http
from operant.sdk import Ask, Point, Price, Record, Reject, Syscall
from operant.sdk.testing.fakes import CountingIds, ManualClock

START = 1_795_206_840_000_000
"""Friday, 20 November 2026, 20:34 UTC."""


class PolicyHost:
    """As much of a `Host` as policies use."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.ids = CountingIds()
        self.http = Http()
        self.prices: dict[str, Price] = {}
        self.answers: dict[type, Callable[[Any], Awaitable[Any]]] = {}
        self.kept: Any = None
        self.made: list[Syscall[Any]] = []
        self.served: dict[type, Callable[[Any, Any], Awaitable[Any]]] = {}
        self._hooks: dict[str, list[tuple[bool, int, Callable[..., Awaitable[object]]]]] = {}
        self._asked: list[str] = []

    def hook(
        self,
        point: Point[Any, Any],
        handler: Callable[..., Awaitable[object]],
        *,
        phase: str = "mutate",
        priority: int = 0,
        fail: str = "",
        timeout_s: float = 5.0,
    ) -> None:
        there = self._hooks.setdefault(point.name, [])
        there.append((phase == "validate", -priority, handler))
        there.sort(key=lambda one: one[:2])

    def syscall(self, call: type, handler: Callable[[Any, Any], Awaitable[Any]]) -> None:
        self.served[call] = handler

    def commands_of(self, agent: Any) -> dict[str, str]:
        return {}

    def price(self, model: str) -> Price | None:
        return self.prices.get(model)

    async def call(self, call: Syscall[Any]) -> Any:
        self.made.append(call)
        return await self.answers[type(call)](call)

    async def provide(self, point: Point[Any, Any], input: Record) -> Any:
        """Ask providers, but for one that is asking itself, as the kernel does."""
        if self._asked:
            return None
        self._asked.append(point.name)
        try:
            for _, _, handler in self._hooks.get(point.name, ()):
                answer = await _called(handler, input, None)
                if answer is not None:
                    return answer
            return None
        finally:
            self._asked.pop()

    async def run(self, point: Point[Any, Any], input: Record, output: Any) -> Any:
        """Pass a gate or transform: return the verdict if there is one, else the output."""
        verdict = None
        for _, _, handler in self._hooks.get(point.name, ()):
            answer = await _called(handler, input, output)
            if isinstance(answer, Reject):
                return answer
            if isinstance(answer, Ask):
                verdict = answer
            elif answer is not None:
                output = answer
        return verdict or output

    async def tell(self, point: Point[Any, Any], input: Record) -> None:
        """Tell observers."""
        for _, _, handler in self._hooks.get(point.name, ()):
            await _called(handler, input, None)

    def hooks_at(self, point: Point[Any, Any]) -> int:
        """Count the handlers of a point."""
        return len(self._hooks.get(point.name, ()))


async def _called(handler: Callable[..., Awaitable[object]], input: Record, output: Any) -> object:
    given = {"input": input, "output": output}
    return await handler(**{name: given[name] for name in inspect.signature(handler).parameters})


@pytest.fixture
def policy_host() -> PolicyHost:
    return PolicyHost()
