"""Reach a system that runs in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from operant.kernel.errors import Denied
from operant.kernel.kernel import Kernel
from operant.kernel.records import Delta, Event, Principal
from operant.kernel.syscalls import SessionHistory, Syscall, allowed
from operant.sdk.whole import whole

R = TypeVar("R")


class LocalClient:
    """A `Client` of somebody, with their capabilities and no more."""

    def __init__(self, kernel: Callable[[], Kernel], principal: Principal) -> None:
        self._kernel = kernel
        self.principal = principal

    async def call(self, call: Syscall[R]) -> R:
        """Make a syscall. Raises `Invalid` for text that cannot be written, and what the call raises."""
        return await self._kernel().call(self.principal, whole(call))

    async def follow(self, session: str = "", after: int = -1) -> AsyncGenerator[Event | Delta, None]:
        """Yield events and deltas. Raises `Denied` where histories may not be read."""
        if not allowed(self.principal, SessionHistory.capability):
            raise Denied(
                f"{self.principal.kind} {self.principal.id} may not follow.", f"It needs {SessionHistory.capability!r}."
            )
        async with aclosing(self._kernel().follow(whole(session), after)) as seen:
            async for one in seen:
                yield one

    async def close(self) -> None:
        """Do nothing: whoever started the system ends it."""
