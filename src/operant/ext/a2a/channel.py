"""The channel `a2a`: what is said there is read from the history, so queueing is delivering."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.a2a.letter import CHANNEL
from operant.sdk import Address, OutboxItem, Receipt


class Unseen:
    """A channel with no person at its end."""

    name = CHANNEL
    exact = True
    pull = True

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Do nothing: answers are looked up in the history."""
        yield

    async def send(self, item: OutboxItem, *, repeat: bool) -> Receipt:
        """Take a message; the history has it."""
        return Receipt()

    async def find(self, item: OutboxItem) -> Receipt | None:
        """Say that it is here: it is in the history."""
        return Receipt()

    async def notice(self, address: Address, text: str) -> None:
        """Do nothing: nobody looks."""
