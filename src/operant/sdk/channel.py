"""A channel whose readers follow the history themselves, so that queueing a message is delivering it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.kernel.ports import Receipt
from operant.kernel.records import Address, OutboxItem


class PullChannel:
    """A channel with nobody at its end who is sent anything."""

    exact = True
    pull = True

    def __init__(self, name: str) -> None:
        self.name = name

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Do nothing: whoever brings the channel listens elsewhere."""
        yield

    async def send(self, item: OutboxItem, *, repeat: bool) -> Receipt:
        """Take a message that an older program left behind; its reader has the history."""
        return Receipt()

    async def find(self, item: OutboxItem) -> Receipt | None:
        """Say that it is here: it is in the history."""
        return Receipt()

    async def notice(self, address: Address, text: str) -> None:
        """Do nothing: who reads sees what is said while it is said."""
