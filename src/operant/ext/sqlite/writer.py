"""The one writer: its own thread, its own connection, and one transaction for everybody who waits.

Nothing else opens the database file, not even to look: closing any descriptor of it would cancel SQLite's locks.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw

from operant.ext.sqlite.operations import Operations
from operant.kit.sqlite import Database
from operant.sdk import Accept, Conflict, OperantError, Operation, StoreStopped

Connect = Callable[[], Database]
Indexed = Sequence[tuple[int, str]]
"""Numbers of events and the words by which they are found."""


class _Words(NamedTuple):
    rows: Indexed


_Write = tuple[Sequence[Operation] | _Words | None, asyncio.Future[None]]
_Outcome = tuple[asyncio.Future[None], OperantError | None]

_GROUP = 2_000
_log = logging.getLogger("operant.store")


class Writer:
    """Carry out writes in the order of their calls."""

    def __init__(self, path: str, connect: Connect, on_damage: Callable[[str, str, str], None]) -> None:
        self._path = path
        self._connect = connect
        self._on_damage = on_damage
        self._queue: queue.SimpleQueue[_Write] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._connection: Database | None = connect()
        self._operations = Operations(self._connection)
        self._wal = 0
        self.stopped: StoreStopped | None = None
        self.stop_seen = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="operant-store", daemon=True)
        self._thread.start()

    def submit(self, operations: Sequence[Operation]) -> asyncio.Future[None]:
        """Start a write."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((operations, future))
        return future

    async def index(self, rows: Indexed) -> None:
        """Bring the search index on."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((_Words(rows), future))
        await future

    async def close(self) -> None:
        """Carry out what waits, then close; a closed database has no write-ahead log left."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((None, future))
        await future
        self._thread.join()

    # ------------------------------------------------------------------ in the thread

    def _work(self) -> None:
        while True:
            group = [self._queue.get()]
            while len(group) < _GROUP and not self._queue.empty():
                group.append(self._queue.get())
            last = group.pop()[1] if group[-1][0] is None else None
            if group:
                self._report(self._settle(group))
            if last is not None:
                self._leave()
                self._report([(last, None)])
                return

    def _report(self, outcomes: list[_Outcome]) -> None:
        try:
            self._loop.call_soon_threadsafe(_resolve, outcomes)
        except RuntimeError:
            _log.debug("nobody waits any more: the event loop is closed")

    def _settle(self, group: list[_Write]) -> list[_Outcome]:
        """Carry out a group in one transaction; where one write of it cannot be, each by itself."""
        try:
            refused = self._transaction(group)
        except Conflict as error:
            if len(group) == 1:
                return [(group[0][1], error)]
            return [outcome for one in group for outcome in self._settle([one])]
        except apsw.Error as error:
            return [(future, self._stop(error)) for _, future in group]
        self._went_well()
        return [(future, refused.get(at)) for at, (_, future) in enumerate(group)]

    def _transaction(self, group: list[_Write]) -> dict[int, Conflict]:
        """Carry out writes and return those that were refused without having changed anything, by their place."""
        if self._connection is None:
            self._connection = self._connect()
            self._operations = Operations(self._connection)
        connection, operations = self._connection, self._operations
        refused: dict[int, Conflict] = {}
        connection.execute("BEGIN IMMEDIATE")
        done = False
        try:
            for at, (wanted, _) in enumerate(group):
                conflict = _carry_out(operations, wanted)
                if conflict is not None:
                    refused[at] = conflict
            connection.execute("COMMIT")
            done = True
        finally:
            if not done:
                operations.forget()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        return refused

    def _went_well(self) -> None:
        if self.stopped is not None:
            _log.info("the store accepts again")
            self.stopped = None
        self._keep_log()

    def _keep_log(self) -> None:
        """Notice when somebody has taken the write-ahead log away; what is in it is then brought home first."""
        inode = _inode(self._path + "-wal")
        if self._wal and inode != self._wal and self._connection is not None:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._drop_connection()
            self._connection = self._connect()
            self._operations = Operations(self._connection)
            self._on_damage(
                "write-ahead log", "operant.db-wal", "It was removed while the store ran; nothing of it was lost."
            )
            inode = 0
        self._wal = inode

    def _stop(self, error: apsw.Error) -> StoreStopped:
        """Say why nothing is accepted. After an I/O error the connection is dropped: a second fsync would lie."""
        stopped = explained(error)
        if self.stopped is None:
            _log.error("the store accepts nothing: %s", stopped.line())
        self.stopped = stopped
        if not isinstance(error, apsw.FullError | apsw.BusyError):
            self._drop_connection()
        self._loop.call_soon_threadsafe(self.stop_seen.set)
        return stopped

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except apsw.Error as error:
                _log.warning("closing the database failed: %s", type(error).__name__)

    def _leave(self) -> None:
        if self._connection is not None:
            try:
                self._connection.execute("PRAGMA optimize")
            except apsw.Error as error:
                _log.info("optimize was skipped: %s", type(error).__name__)
        self._drop_connection()


def _carry_out(operations: Operations, wanted: Sequence[Operation] | _Words | None) -> Conflict | None:
    """Carry out one write. A message that was accepted before is refused without undoing anybody else's work."""
    if isinstance(wanted, _Words):
        operations.index(wanted.rows)
        return None
    alone = wanted is not None and len(wanted) == 1 and isinstance(wanted[0], Accept)
    try:
        for operation in wanted or ():
            operations.carry_out(operation)
    except Conflict as conflict:
        if not alone:
            raise
        return conflict
    return None


def _resolve(outcomes: list[_Outcome]) -> None:
    for future, error in outcomes:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def _inode(path: str) -> int:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return 0


def explained(error: apsw.Error) -> StoreStopped:
    """Put what SQLite says into words for a person."""
    match error:
        case apsw.FullError():
            return StoreStopped("The disk is full.", "Free some space; Operant goes on by itself.")
        case apsw.ReadOnlyError():
            return StoreStopped("The home cannot be written to.", "Make it writable; Operant goes on by itself.")
        case apsw.CantOpenError():
            return StoreStopped(
                "The database cannot be opened.", "Check the home's rights and the number of open files."
            )
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreStopped("The database is damaged.", "Stop Operant and run `operant doctor`.")
        case apsw.IOError():
            return StoreStopped("The disk reports an error.", "Check the disk; Operant goes on when it works again.")
        case _:
            busy = isinstance(error, apsw.BusyError)
            words = "Another program holds the database." if busy else f"SQLite failed: {error}."
            return StoreStopped(words, "Run `operant doctor`.")
