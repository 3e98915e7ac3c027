"""The channel `http`: whoever is answered here reads the history, so queueing a reply is delivering it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.gateway.exchange import CHANNEL
from operant.sdk import Address, OutboxItem, Receipt


class HttpChannel:
    """Readers of this channel pull."""

    name = CHANNEL
    exact = True
    pull = True

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Do nothing: the server listens for all of the gateway."""
        yield

    async def send(self, item: OutboxItem, *, repeat: bool) -> Receipt:
        """Take a message that an older program left behind; its reader has the history."""
        return Receipt()

    async def find(self, item: OutboxItem) -> Receipt | None:
        """Say that it is here: it is in the history."""
        return Receipt()

    async def notice(self, address: Address, text: str) -> None:
        """Do nothing: notices are shown as deltas."""
