"""One turn's time: its limit, the stop that a person asked for, and the notice when nothing moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any


class Deadline:
    """Bound a turn in time. The limit stands still while a person is asked; a stop does not."""

    def __init__(self, limit_s: float, notice_s: float, notify: Callable[[float], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._scope = asyncio.timeout(limit_s)
        self._notice_s = notice_s
        self._notify = notify
        self._timer: asyncio.TimerHandle | None = None
        self._paused, self._left = 0, limit_s
        self._last = self._loop.time()
        self.stopped = False

    async def __aenter__(self) -> Deadline:
        await self._scope.__aenter__()
        self.beat()
        self._timer = self._loop.call_later(self._notice_s, self._look)
        return self

    async def __aexit__(self, *reason: Any) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        return await self._scope.__aexit__(*reason)

    def beat(self) -> None:
        """Note that something moved."""
        self._last = self._loop.time()

    def stop(self) -> None:
        """End the turn now."""
        self.stopped = True
        self._scope.reschedule(self._loop.time())

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let the clock stand still; several may have it so at once."""
        if not self._paused and not self.stopped:
            self._left = (self._scope.when() or 0.0) - self._loop.time()
            self._scope.reschedule(None)
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1
            self.beat()
            if not (self._paused or self.stopped or self._scope.expired()):
                self._scope.reschedule(self._loop.time() + self._left)

    def _look(self) -> None:
        idle = self._loop.time() - self._last
        if idle >= self._notice_s and not self._paused:
            self._notify(idle)
            self._timer = self._loop.call_later(self._notice_s, self._look)
        else:
            self._timer = self._loop.call_later(max(self._notice_s - idle, 0.05), self._look)
