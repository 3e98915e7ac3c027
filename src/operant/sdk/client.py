"""How programs outside the kernel reach it: the same calls in process and over the socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, TypeVar

from operant.kernel.records import Delta, Event
from operant.kernel.syscalls import Syscall

R = TypeVar("R")

Seen = Event | Delta


class Client(Protocol):
    """A way to a running system, in this process or through its socket."""

    async def call(self, call: Syscall[R]) -> R:
        """Make a syscall. Raises the kernel's errors; `Unavailable` when the system went away."""
        ...

    def follow(self, session: str = "", after: int = -1) -> AsyncGenerator[Seen, None]:
        """Yield a session's events with seq > `after` (-1: only new ones) and its deltas; empty: all sessions.

        Nothing is missed and nothing comes twice among the events of one session; deltas may be dropped.
        """
        ...

    async def close(self) -> None:
        """Let go of the system; a turn that runs goes on where it runs."""
        ...
