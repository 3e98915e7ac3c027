"""The store: the writer, the readers and the blob files behind one interface."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from operant.ext.sqlite import checks, reader, search
from operant.ext.sqlite.blobs import BlobFiles
from operant.ext.sqlite.connection import Durability, Place, connect, migrate
from operant.ext.sqlite.reader import Readers
from operant.ext.sqlite.writer import Writer
from operant.sdk import (
    BlobRef,
    Clock,
    Damage,
    Damaged,
    Event,
    Finding,
    Head,
    Health,
    Hit,
    InboxItem,
    Operation,
    OutboxItem,
    PutValue,
    SessionInfo,
    StoreStopped,
    UsageRow,
)

PROBE_S = 1.0
GRACE_S = 3600.0
"""How long a blob may lie about before somebody refers to it."""

_log = logging.getLogger("operant.store")


class SqliteStore:
    """Keep everything in one file and a directory beside it. Make one with `open_store`."""

    def __init__(self, place: Place, durability: Durability, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._damages: dict[str, Damage] = {}
        self._blobs = BlobFiles(place.blobs, sync=durability == "power")
        self._readers = Readers(place)
        self._writer = Writer(str(place.database), partial(connect, place, durability), self._damaged)
        self._index = search.Index(self._writer, self._readers)

    async def close(self) -> None:
        """Carry out what waits and close; the marker of an open store goes last."""
        self._readers.close()
        await self._writer.close()
        self._place.marker.unlink(missing_ok=True)

    # ------------------------------------------------------------------ writing

    def submit(self, *operations: Operation) -> asyncio.Future[None]:
        """Start a write."""
        return self._writer.submit(operations)

    async def write(self, *operations: Operation) -> None:
        """Carry out all operations in one transaction."""
        await self._writer.submit(operations)

    @property
    def health(self) -> Health:
        """Tell whether writes are accepted now."""
        stopped = self._writer.stopped
        if stopped is None:
            return Health(accepting=True)
        return Health(accepting=False, reason=stopped.sentence, hint=stopped.hint)

    async def recovered(self) -> None:
        """Return when the store accepts again after having stopped."""
        await self._writer.stop_seen.wait()
        while True:
            try:
                now = str(self._clock.now()).encode()
                await self.write(PutValue(namespace="store", key="probe", value=now))
            except StoreStopped:
                await self._clock.sleep(PROBE_S)
            else:
                self._writer.stop_seen.clear()
                return

    # ------------------------------------------------------------------ reading

    async def head(self, session: str) -> Head | None:
        """Return where a session ends."""
        return await self._readers.run(lambda run: reader.head(run, session))

    async def events(self, session: str, after: int = 0, limit: int = 0) -> Sequence[Event]:
        """Return events in order; damaged ones are left out and noted."""
        try:
            found, damaged = await self._readers.run(lambda run: reader.events(run, session, after, limit))
        except Damaged:
            self._damaged("page", f"session {session}", "The session cannot be read; the others can.")
            raise
        for seq in damaged:
            self._damaged("event", f"session {session} event {seq}", "It is left out of everything.")
        return found

    async def sessions(
        self, *, limit: int = 50, before: int = 0, archived: bool = False, agent: str = ""
    ) -> Sequence[SessionInfo]:
        """List sessions, the last changed first."""
        return await self._readers.run(lambda run: reader.sessions(run, limit, before, archived, agent))

    async def unfinished(self) -> Sequence[str]:
        """List the sessions with something to do."""
        return await self._readers.run(reader.unfinished)

    async def accepted(self, channel: str, account: str, external_id: str) -> InboxItem | None:
        """Find an accepted message by its platform's id."""
        where, arguments = "channel = ? AND account = ? AND external_id = ?", (channel, account, external_id)
        found = await self._readers.run(lambda run: reader.inbox(run, where, arguments))
        return found[0] if found else None

    async def inbox(self, session: str) -> Sequence[InboxItem]:
        """List a session's waiting items."""
        where = "session = ? AND state = 'waiting'"
        return await self._readers.run(lambda run: reader.inbox(run, where, (session,)))

    async def inbox_item(self, inbox_id: str) -> InboxItem | None:
        """Return one inbox item."""
        found = await self._readers.run(lambda run: reader.inbox(run, "id = ?", (inbox_id,)))
        return found[0] if found else None

    async def outbox(
        self, *, states: tuple[str, ...] = ("waiting", "handed"), session: str = "", limit: int = 0
    ) -> Sequence[OutboxItem]:
        """List outbox items, oldest first."""
        marks = ", ".join("?" * len(states))
        where = f"state IN ({marks}) AND (? = '' OR session = ?) ORDER BY queued, id LIMIT ?"
        arguments = (*states, session, session, limit or -1)
        return await self._readers.run(lambda run: reader.outbox(run, where, arguments))

    async def outbox_item(self, outbox_id: str) -> OutboxItem | None:
        """Return one outbox item."""
        found = await self._readers.run(lambda run: reader.outbox(run, "id = ?", (outbox_id,)))
        return found[0] if found else None

    async def search(self, query: str, *, session: str = "", limit: int = 20) -> Sequence[Hit]:
        """Find events by words, best first."""
        return await self._index.find(query, session, limit)

    async def usage(self, since_day: str = "") -> Sequence[UsageRow]:
        """Return usage from a day on."""
        return await self._readers.run(lambda run: reader.usage(run, since_day))

    async def value(self, namespace: str, key: str) -> bytes | None:
        """Return a value that has not expired."""
        sql, now = "SELECT value FROM kv WHERE namespace = ? AND key = ? AND (expires = 0 OR expires > ?)", self._now
        return await self._readers.run(lambda run: run(sql, (namespace, key, now())).get)

    async def values(self, namespace: str, prefix: str = "") -> Sequence[tuple[str, bytes]]:
        """List values by key."""
        sql = (
            "SELECT key, value FROM kv WHERE namespace = ? AND substr(key, 1, ?) = ? AND (expires = 0 OR expires > ?) "
            "ORDER BY key"
        )
        arguments = (namespace, len(prefix), prefix, self._now())
        return await self._readers.run(lambda run: [(row[0], row[1]) for row in run(sql, arguments)])

    # ------------------------------------------------------------------ blobs and damage

    async def put_blob(self, data: bytes, media_type: str = "application/octet-stream", name: str = "") -> BlobRef:
        """Keep bytes under the digest of their content."""
        digest = await self._readers.blocking(lambda: self._blobs.put(data))
        return BlobRef(digest=digest, size=len(data), media_type=media_type, name=name)

    async def get_blob(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        """Return bytes of a blob."""
        return await self._readers.blocking(lambda: self._blobs.get(digest, offset, limit))

    async def collect(self) -> int:
        """Remove blobs that nobody refers to and that are not young; return how many."""

        def sweep(run: reader.Run) -> int:
            old = self._clock.now() / 1_000_000 - GRACE_S
            gone = [
                digest
                for digest, wanted in self._blobs.all()
                if wanted < old and run("SELECT 1 FROM blob_refs WHERE digest = ?", (digest,)).get is None
            ]
            for digest in gone:
                self._blobs.remove(digest)
            return len(gone)

        return await self._readers.run(sweep)

    async def damages(self) -> Sequence[Damage]:
        """List the damage found so far."""
        return tuple(self._damages.values())

    async def look_over(self, *, full: bool) -> tuple[Finding, ...]:
        """Return what an examination of the store found."""
        found = await self._readers.run(lambda run: checks.look_over(run, self._place, full))
        return tuple(found)

    def _now(self) -> int:
        return self._clock.now()

    def _damaged(self, what: str, where: str, action: str) -> None:
        if where not in self._damages:
            _log.error("damage: %s, %s. %s", what, where, action)
            self._damages[where] = Damage(what=what, where=where, found=self._clock.now(), action=action)

    def note_lost_log(self) -> None:
        """Put on record that the write-ahead log of an unclean end is gone."""
        self._damaged(
            "write-ahead log", "operant.db-wal", "It is missing: the last messages before the end may be lost."
        )


async def open_store(directory: Path, durability: Durability, clock: Clock) -> SqliteStore:
    """Open the store in a directory, and bring it to this version. Raises `Broken`, `Unavailable` or `StoreStopped`."""
    place = Place(directory)
    place.prepare()
    lost = place.lost_log()
    await asyncio.get_running_loop().run_in_executor(None, migrate, place, durability)
    store = SqliteStore(place, durability, clock)
    if lost:
        store.note_lost_log()
    os.close(os.open(place.marker, os.O_CREAT | os.O_WRONLY, 0o600))
    return store
