"""Read what the store keeps."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.lookup.trace import Tracer
from operant.sdk import (
    BlobGet,
    BlobPut,
    BlobRef,
    Hit,
    Host,
    Invalid,
    MessageList,
    MessageTrace,
    OutboxItem,
    Principal,
    SessionSearch,
    UsageList,
    UsageRow,
)


class Lookup:
    """Carry out the calls that only read."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def search(self, who: Principal, call: SessionSearch) -> tuple[Hit, ...]:
        """Find events by words."""
        return tuple(await self._host.kept.search(call.query, session=call.session, limit=call.limit))

    async def usage(self, who: Principal, call: UsageList) -> tuple[UsageRow, ...]:
        """Return usage from a day on."""
        return tuple(await self._host.kept.usage(call.since_day))

    async def letters(self, who: Principal, call: MessageList) -> tuple[OutboxItem, ...]:
        """List messages on their way, or the dead letters."""
        states = ("dead",) if call.dead else ("waiting", "handed")
        return tuple(await self._host.kept.outbox(states=states, session=call.session))

    async def blob(self, who: Principal, call: BlobGet) -> str:
        """Return a piece of a blob as text."""
        data = await self._host.blobs.get_blob(call.digest, call.offset, call.limit)
        return data.decode(errors="replace")

    async def keep(self, who: Principal, call: BlobPut) -> BlobRef:
        """Keep text, or bytes as base64, as a blob."""
        try:
            data = b64decode(call.text, validate=True) if call.encoding == "base64" else call.text.encode()
        except ValueError as error:
            raise Invalid("This is no base64.", "Send it without line breaks, with its padding.") from error
        return await self._host.blobs.put_blob(data, call.media_type, call.name)


@asynccontextmanager
async def setup(host: Host, settings: None) -> AsyncGenerator[None]:
    """Offer the lookups."""
    lookup = Lookup(host)
    host.syscall(SessionSearch, lookup.search)
    host.syscall(UsageList, lookup.usage)
    host.syscall(MessageList, lookup.letters)
    host.syscall(MessageTrace, Tracer(host).trace)
    host.syscall(BlobGet, lookup.blob)
    host.syscall(BlobPut, lookup.keep)
    yield
