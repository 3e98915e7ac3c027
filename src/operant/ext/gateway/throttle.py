"""Slow down who tries tokens: so many failures a minute from one address, this machine's own included."""

from __future__ import annotations

import math
from collections import OrderedDict

from operant.sdk import Clock

FAILURES = 10
WINDOW_S = 60.0
_KEPT = 10_000
"""Addresses that are remembered; the one longest quiet goes first."""


class Throttle:
    """Count failures by address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def wait_s(self, address: str) -> int:
        """Return the seconds until an address may try again; 0: it may now."""
        recent = self._recent(address)
        if len(recent) < FAILURES:
            return 0
        return max(1, math.ceil(recent[-FAILURES] + WINDOW_S - self._clock.monotonic()))

    def failed(self, address: str) -> None:
        """Note a failure."""
        self._failed[address] = [*self._recent(address), self._clock.monotonic()][-FAILURES:]
        self._failed.move_to_end(address)
        if len(self._failed) > _KEPT:
            self._failed.popitem(last=False)

    def _recent(self, address: str) -> list[float]:
        since = self._clock.monotonic() - WINDOW_S
        return [moment for moment in self._failed.get(address, ()) if moment > since]
