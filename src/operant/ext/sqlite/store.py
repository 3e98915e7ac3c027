"""The store: the writer, the readers, the search and the blob files behind one interface."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from operant.ext.sqlite import checks, reader
from operant.ext.sqlite.blobs import BlobFiles
from operant.ext.sqlite.breath import Breath
from operant.ext.sqlite.connection import Durability, Place, connect, open_migrated
from operant.ext.sqlite.damage import Damages
from operant.ext.sqlite.ledger import Erased, Files, Ledger, Work
from operant.ext.sqlite.marker import Marker
from operant.ext.sqlite.pool import Readers
from operant.ext.sqlite.search import Index
from operant.ext.sqlite.trouble import of_system
from operant.ext.sqlite.writer import Notices, Writer
from operant.kit.sqlite import Execute
from operant.sdk import (
    BlobRef,
    Clock,
    Damage,
    Damaged,
    Erase,
    Event,
    Finding,
    Head,
    Health,
    Hit,
    InboxItem,
    Operation,
    OutboxItem,
    SessionInfo,
    StoreStopped,
    UsageRow,
)

T = TypeVar("T")

GRACE_S = 3600.0
"""How long a blob may lie about before somebody refers to it."""
_ROOM = 1 << 20


class SqliteStore:
    """Keep everything in one file and a directory beside it. Made by `open_store`; `async with` closes it."""

    def __init__(self, place: Place, durability: Durability, clock: Clock) -> None:
        self._place = place
        self._durability: Durability = durability
        self._clock = clock
        self._breath = Breath(asyncio.get_running_loop())
        self._damages = Damages(clock, self._enqueue)
        self._blobs = BlobFiles(place.blobs, clock, sync=durability == "power")
        self._readers = Readers(place, self._breath, self._halt)
        self._index = Index(place, self._readers, self._unindexed)
        self._writer: Writer | None = None

    async def open(self) -> None:
        """Open the files. Raises `Broken` or `StoreStopped`."""
        try:
            ledger, left = await asyncio.get_running_loop().run_in_executor(None, self._open_files)
        except BaseException:
            self._index.close()
            self._readers.close()
            raise
        notices = Notices(self._referred, self._index.nudge, self._readers.try_fresh)
        self._writer = Writer(ledger, str(self._place.directory), self._breath, notices)
        self._note_losses(left, ledger.commits)

    def _open_files(self) -> tuple[Ledger, tuple[int | None, bool]]:
        try:
            return self._open_ledger()
        except OSError as error:
            raise of_system(error.errno or errno.EIO) from error

    def _open_ledger(self) -> tuple[Ledger, tuple[int | None, bool]]:
        log_was_there = self._place.log.exists()
        self._place.prepare(used_before=bool(Marker(self._place.marker).read()))
        connection = open_migrated(self._place, self._durability)
        files = Files(partial(connect, self._place, self._durability), self._readers.parted, self._note)
        ledger = Ledger(self._place, connection, files)
        self._damages.load(connection.execute)
        return ledger, (ledger.open_mark(), log_was_there)

    def _note_losses(self, left: tuple[int | None, bool], commits: int) -> None:
        """After an unclean end, compare what is there with what the last process had told others."""
        told, log_was_there = left
        if told is None:
            return
        lost = told - commits
        saying = f"the last {lost} writes before the end are lost" if lost > 0 else "nothing that is known of is lost"
        if not log_was_there:
            text = f"The write-ahead log is missing: the last messages may be lost; {saying}."
            self._damages.note("write-ahead log", f"operant.db-wal, write {told}", text)
        elif lost > 0:
            text = f"The write-ahead log was cut or damaged: {saying}."
            self._damages.note("write-ahead log", f"operant.db-wal, write {told}", text)

    async def close(self) -> None:
        """Carry out what waits and close everything."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._index.close)
        await loop.run_in_executor(None, self._readers.close)
        if self._writer is not None:
            await self._writer.close()
        self._breath.close()

    async def __aenter__(self) -> SqliteStore:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    # ------------------------------------------------------------------ writing

    def submit(self, *operations: Operation) -> asyncio.Future[None]:
        """Start a write."""
        if self._writer is None:
            raise StoreStopped("The store is not open.")
        for operation in operations:
            if isinstance(operation, Erase):
                self._damages.forget(operation.session)
        return self._writer.submit(operations)

    async def write(self, *operations: Operation) -> None:
        """Carry out all operations in one transaction."""
        await self.submit(*operations)

    @property
    def health(self) -> Health:
        """Tell whether writes are accepted now."""
        stopped = self._writer.stopped if self._writer else StoreStopped("The store is not open.")
        if stopped is None:
            return Health(accepting=True)
        return Health(accepting=False, reason=stopped.sentence, hint=stopped.hint)

    async def recovered(self) -> None:
        """Return when the store accepts again after having stopped."""
        if self._writer is not None:
            await self._writer.recovered()

    # ------------------------------------------------------------------ reading

    async def head(self, session: str) -> Head | None:
        """Return where a session ends."""
        try:
            return await self._readers.run(lambda run: reader.head(run, session))
        except Damaged:
            self._session_damaged(session)
            raise

    async def events(self, session: str, after: int = 0, limit: int = 0) -> Sequence[Event]:
        """Return events in order; damaged ones are left out and noted."""
        try:
            found = await self._readers.run(lambda run: reader.events(run, session, after, limit))
        except Damaged:
            self._session_damaged(session)
            raise
        for lost in found.lost:
            where, action = f"session {session} event {lost.seq}", "It is left out of everything."
            if self._damages.note("event", where, action, session) and lost.row is not None:
                self._damages.keep_aside(session, lost.seq, repr(lost.row))
        return found.events

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
        if not external_id:
            return None
        where, arguments = "channel = ? AND account = ? AND external_id = ?", (channel, account, external_id)
        found = await self._readers.run(lambda run: reader.inbox(run, f"{where} AND external_id <> ''", arguments))
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
        where, arguments = f"state IN ({', '.join('?' * len(states))})", states
        if "delivered" not in states:
            where += " AND state <> 'delivered'"  # so that the index of what is pending serves
        if session:
            where, arguments = f"{where} AND session = ?", (*states, session)
        return await self._readers.run(lambda run: reader.outbox(run, where, arguments, limit))

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
        now = self._clock.now()
        return await self._readers.run(lambda run: reader.value(run, namespace, key, now))

    async def values(
        self, namespace: str, prefix: str = "", after: str | None = None, limit: int = 0
    ) -> Sequence[tuple[str, bytes]]:
        """List values by key."""
        page = reader.Page(prefix, after, limit)
        now = self._clock.now()
        return await self._readers.run(lambda run: reader.values(run, namespace, page, now))

    # ------------------------------------------------------------------ blobs and damage

    async def put_blob(self, data: bytes, media_type: str = "application/octet-stream", name: str = "") -> BlobRef:
        """Keep bytes under the digest of their content."""
        digest = await self._with_files(lambda: self._blobs.put(data), len(data) + _ROOM)
        return BlobRef(digest=digest, size=len(data), media_type=media_type, name=name)

    async def get_blob(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        """Return bytes of a blob."""
        return await self._with_files(lambda: self._blobs.get(digest, offset, limit))

    async def collect(self) -> int:
        """Remove blobs that nobody refers to and that are not young, and values that expired; return how many blobs."""
        now = self._clock.now()
        self._enqueue(lambda run: run("DELETE FROM kv WHERE expires > 0 AND expires <= ?", (now,)))

        def sweep(run: Execute) -> int:
            old = set(self._blobs.older(GRACE_S))
            orphans = {one for one in old if run("SELECT 1 FROM blob_refs WHERE digest = ?", (one,)).get is None}
            self._blobs.referred(orphans)  # whoever put them has had an hour
            return self._blobs.unreferenced(orphans)

        return await self._readers.run(sweep)

    async def damages(self) -> Sequence[Damage]:
        """List the damage found so far."""
        return self._damages.list()

    async def look_over(self, *, full: bool) -> tuple[Finding, ...]:
        """Return what an examination of the store found; with `full` every event and every blob is read."""
        look = partial(checks.look_over, self._place, self._blobs, full)
        return tuple(await self._readers.run(look))

    # ------------------------------------------------------------------ what the parts tell

    async def _with_files(self, work: Callable[[], T], room: int = 0) -> T:
        try:
            return await self._readers.blocking(work)
        except StoreStopped as stopped:
            full = stopped.sentence == of_system(errno.ENOSPC).sentence
            self._halt(stopped, room if full else 0)
            raise

    def _enqueue(self, work: Work) -> None:
        if self._writer is not None:
            self._writer.enqueue(work)

    def _note(self, what: str, where: str, action: str) -> None:
        self._damages.note(what, where, action)

    def _halt(self, why: StoreStopped, room: int = 0) -> None:
        if self._writer is not None:
            self._writer.halt(why, room)

    def _session_damaged(self, session: str) -> None:
        action = "It cannot be read; the others can."
        if self._damages.note("session", f"session {session}", action, session):
            self._damages.mark_session(session)

    def _unindexed(self, sessions: Sequence[int]) -> None:
        for session in sessions:
            self._enqueue(lambda run, session=session: run("DELETE FROM erased WHERE session = ?", (session,)))

    def _referred(self, erased: Erased) -> None:
        """In the writer's thread: somebody refers to blobs now, or an erased session does no longer."""
        self._blobs.referred(erased.referred)
        if erased.orphans:
            sql = "SELECT 1 FROM blob_refs WHERE digest = ?"
            self._blobs.unreferenced(
                self._readers.read(lambda run: [one for one in erased.orphans if run(sql, (one,)).get is None])
            )
        if erased.erases:
            self._index.nudge()


async def open_store(directory: Path, durability: Durability, clock: Clock) -> SqliteStore:
    """Open the store in a directory, and bring it to this version. Raises `Broken` or `StoreStopped`."""
    store = SqliteStore(Place(Path(directory)), durability, clock)
    await store.open()
    return store
