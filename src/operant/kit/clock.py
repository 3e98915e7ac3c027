"""The machine's clock; the only module that asks the machine for the time."""

from __future__ import annotations

import time


class SystemClock:
    """Tell the time of this machine."""

    def now(self) -> int:
        """Return microseconds since 1970, UTC."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import asyncio  # so that the command line can tell the time without a loop

        await asyncio.sleep(seconds)


def pause(seconds: float) -> None:
    """Block this thread for a moment; for programs without a loop that wait for another process."""
    time.sleep(seconds)
