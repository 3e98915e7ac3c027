"""How soon a service that ended is started again."""

from __future__ import annotations

from collections import deque

FIRST_S, LONGEST_S = 0.5, 30.0
MOST_STARTS, WITHIN_S = 5, 60.0
_WELL_S = 60.0


class Pace:
    """Count starts: 0.5 s, twice that each time, 30 s at most; five starts within a minute are too many."""

    def __init__(self) -> None:
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._failed = 0

    def started(self, now: float) -> None:
        """Note a start."""
        if self._starts and now - self._starts[-1] > _WELL_S:
            self._failed = 0
        self._starts.append(now)

    def wait_s(self, now: float) -> float | None:
        """Return how long to wait before the next start after one that failed; None: do not try again."""
        if len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_S:
            return None
        if self._starts and now - self._starts[-1] > _WELL_S:
            self._failed = 0
        self._failed += 1
        return min(FIRST_S * 2 ** (self._failed - 1), LONGEST_S)

    def forget(self) -> None:
        """Begin anew, as when a person says so."""
        self._starts.clear()
        self._failed = 0
