"""Let other threads have the interpreter while the event loop waits for them.

A thread that wants the interpreter waits 5 ms before it asks for it, and starts to wait anew whenever somebody else let
go and took it back in between. A busy event loop does that at every look for input: the writer's thread then starves.
Measured with a loop that is never idle: a write took seconds, with a breath it takes 8 ms (p99, 50 writers).
"""

from __future__ import annotations

import asyncio

from operant.kit.clock import pause

_TICK_S = 0.001
_BREATH_S = 0.000_02


class Breath:
    """Pause the event loop for some microseconds each millisecond in which work waits and none is done."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting = 0
        self._done = 0
        self._seen = 0
        self._timer: asyncio.TimerHandle | None = None

    def began(self) -> None:
        """Count work that was handed to another thread."""
        self._waiting += 1
        if self._timer is None:
            self._seen = self._done
            self._timer = self._loop.call_later(_TICK_S, self._tick)

    def ended(self, count: int = 1) -> None:
        """Count work that is done."""
        self._waiting -= count
        self._done += 1

    def close(self) -> None:
        """Stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        if not self._waiting:
            self._timer = None
            return
        if self._seen == self._done:
            pause(_BREATH_S)
        self._seen = self._done
        self._timer = self._loop.call_later(_TICK_S, self._tick)
