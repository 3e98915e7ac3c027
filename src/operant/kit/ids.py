"""Identifiers that sort by the time they were made (UUIDv7, RFC 9562)."""

from __future__ import annotations

import os
from collections.abc import Callable

_RANDOM_BITS = 74
_VERSION = 0x7 << 76
_VARIANT = 0b10 << 62
_STEP_BYTES = 4
_POOL = 4096
_FRACTION = 1 << 53


class SystemIds:
    """Make UUIDv7 texts that never sort before one made earlier, even when the clock is set back.

    `now` returns microseconds since 1970. Within one millisecond the random part grows by a random step, so that ids
    stay in order and cannot be guessed.
    """

    def __init__(self, now: Callable[[], int], entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._now = now
        self._entropy = entropy
        self._last = 0
        self._pool = b""
        self._taken = 0

    def new(self) -> str:
        """Return a fresh id."""
        fresh = self._now() // 1_000 << _RANDOM_BITS
        if fresh >> _RANDOM_BITS > self._last >> _RANDOM_BITS:
            # The highest random bit stays free: the steps of one millisecond never run into the time.
            self._last = fresh | int.from_bytes(self._random(10), "big") >> 7
        else:
            self._last += 1 + int.from_bytes(self._random(_STEP_BYTES), "big")
        return _text(self._last)

    def jitter(self) -> float:
        """Return a random number from 0 up to 1."""
        return (int.from_bytes(self._random(8), "big") >> 11) / _FRACTION

    def _random(self, count: int) -> bytes:
        """Return random bytes, fetched by the page: a call into the system costs more than an id."""
        if self._taken + count > len(self._pool):
            self._pool, self._taken = self._entropy(_POOL), 0
        self._taken += count
        return self._pool[self._taken - count : self._taken]


def _text(value: int) -> str:
    """Put 48 bits of time and 74 random bits around the version and the variant."""
    time_ms = value >> _RANDOM_BITS
    high = value >> 62 & 0xFFF
    low = value & (1 << 62) - 1
    digits = f"{time_ms << 80 | _VERSION | high << 64 | _VARIANT | low:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
