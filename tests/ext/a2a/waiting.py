"""Wait for what another system does, leaving the store time to write between two looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 20.0


async def until(probe: Callable[[], Awaitable[T]]) -> T:
    """Return what a probe finds, once it finds something."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await probe()):
            await asyncio.sleep(0.005)
    return found
