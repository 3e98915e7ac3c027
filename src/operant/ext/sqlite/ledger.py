"""The database as the writer's thread has it: one connection, one transaction for everybody, a watch over the files.

Nothing else opens the database file, not even to look: closing any descriptor of it would cancel SQLite's locks.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import apsw

from operant.ext.sqlite.connection import Place, make_private
from operant.ext.sqlite.marker import Marker
from operant.ext.sqlite.operations import Operations
from operant.ext.sqlite.trouble import CHECK, DAMAGE, needs_reopening
from operant.kit.sqlite import Database, Execute, copy_database
from operant.sdk import Accept, Conflict, Damaged, OperantError, Operation, StoreStopped

Extra = Callable[[Execute], object]
Work = Sequence[Operation] | Extra
"""Operations of a caller, or statements of our own that go with them."""

_PROBE_BYTES = 32_768
_log = logging.getLogger("operant.store")


class Erased(NamedTuple):
    """Blobs that erased sessions referred to, and those that somebody now refers to."""

    orphans: frozenset[str]
    referred: frozenset[str]
    erases: bool


class Files(NamedTuple):
    """What a ledger needs from outside; `parted` closes all other connections while it is entered."""

    connect: Callable[[], Database]
    parted: Callable[[], AbstractContextManager[object]]
    on_damage: Callable[[str, str, str], None]


class Ledger:
    """Carry out groups of writes."""

    def __init__(self, place: Place, connection: Database, files: Files) -> None:
        self.pages = 0
        """How many pages the write-ahead log has."""
        self.commits = 0
        self._place = place
        self._files = files
        self._marker = Marker(place.marker)
        self._connection: Database | None = None
        self._database_file = 0
        self._log_file = 0
        self._use(connection)
        self.commits = int(self._operations.read_meta("commits"))
        self._database_file = _inode(place.database)

    def open_mark(self) -> int | None:
        """Make the mark of an open store; return the commits that the last process left when it did not close."""
        left = self._marker.read()
        self._marker.place(self.commits)
        return left

    def _use(self, connection: Database) -> None:
        connection.set_wal_hook(self._count_pages)
        self._connection = connection
        self._operations = Operations(connection)
        self._log_file = 0

    def _count_pages(self, connection: object, name: str, pages: int) -> int:
        self.pages = pages
        return apsw.SQLITE_OK

    # ------------------------------------------------------------------ writing

    def carry_out(self, works: Sequence[Work]) -> tuple[list[OperantError | None], Erased]:
        """Carry out a group in one transaction, and say for each whether it could be.

        Raises `apsw.Error` or `StoreStopped` when nothing can be written; then nothing was, as far as anybody can tell.
        """
        connection = self._connection or self._reconnect()
        try:
            outcomes = self._transaction(connection, lambda: self._together(works))
        except (OperantError, *DAMAGE) as error:
            if len(works) == 1:
                return [_as_outcome(error)], Erased(frozenset(), frozenset(), False)
            outcomes = self._transaction(connection, lambda: self._apart(connection, works))
        done = self._operations
        erased = Erased(frozenset(done.erased), frozenset(done.referred), done.erases)
        self._look_after()
        return outcomes, erased

    def _transaction(
        self, connection: Database, carry_out: Callable[[], list[OperantError | None]]
    ) -> list[OperantError | None]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._operations.begin()
            outcomes = carry_out()
            commits = self._operations.count_commit()
            connection.execute("COMMIT")
        except BaseException:
            self._operations.forget()
            if connection.in_transaction:  # SQLite ends it by itself after some errors
                connection.execute("ROLLBACK")
            raise
        self.commits = commits
        return outcomes

    def _together(self, works: Sequence[Work]) -> list[OperantError | None]:
        outcomes: list[OperantError | None] = []
        for work in works:
            try:
                self._apply(work)
                outcomes.append(None)
            except Conflict as conflict:
                if not _is_accept(work):
                    raise
                outcomes.append(conflict)  # a message that came twice has changed nothing: nobody's work is undone
        self._operations.finish()
        return outcomes

    def _apart(self, connection: Database, works: Sequence[Work]) -> list[OperantError | None]:
        """Carry out each by itself within the transaction, so that one that cannot be takes no other with it."""
        outcomes: list[OperantError | None] = []
        for work in works:
            try:
                with connection:
                    self._apply(work)
                    self._operations.finish()
                outcomes.append(None)
            except (OperantError, *DAMAGE) as error:
                self._operations.forget()
                outcomes.append(_as_outcome(error))
        return outcomes

    def _apply(self, work: Work) -> None:
        if callable(work):
            work(self._operations.run)
            return
        for operation in work:
            self._operations.carry_out(operation)

    # ------------------------------------------------------------------ looking after the files

    def _look_after(self) -> None:
        """After a commit and before anybody hears of it: see that the files are ours, and count it in the mark."""
        if _inode(self._place.database) != self._database_file:
            self._rescue_database()
        log = _inode(self._place.log)
        if self._log_file and log != self._log_file:
            self._rescue_log()
            log = _inode(self._place.log)
        self._log_file = log
        self._marker.note(self.commits)

    def _rescue_log(self) -> None:
        """Bring home what is in a log that was deleted under us: we still hold it open, a next process would not."""
        with self._files.parted():
            self._checkpoint_whole()
            self._reopen()
        self._files.on_damage(
            "write-ahead log", "operant.db-wal", "It was removed while the store was open; nothing of it was lost."
        )

    def _rescue_database(self) -> None:
        """Write a database that was deleted under us anew, from what we still hold open."""
        if self._place.database.exists():
            raise StoreStopped(
                f"{self._place.database} was replaced while the store was open.",
                f"Move the new file away and Operant writes the old one anew, or end Operant and start it. {CHECK}",
            )
        connection = self._connection
        if connection is None:
            raise StoreStopped(f"{self._place.database} is gone.", "Put it back from a backup.")
        with self._files.parted():
            self._checkpoint_whole()
            fresh = self._place.database.with_suffix(".fresh")
            fresh.unlink(missing_ok=True)
            make_private(fresh)
            copy_database(connection, str(fresh))
            self.drop()
            self._place.log.unlink(missing_ok=True)
            self._place.memory.unlink(missing_ok=True)
            fresh.rename(self._place.database)
            self._database_file = _inode(self._place.database)
            self._reconnect()
        self._files.on_damage(
            "database file", "operant.db", "It was removed while the store was open, and was written anew."
        )

    def _checkpoint_whole(self) -> None:
        if self._connection is not None:
            self._connection.wal_checkpoint(None, apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self.pages = 0

    def _reopen(self) -> None:
        self.drop()
        self._reconnect()

    def _reconnect(self) -> Database:
        if _inode(self._place.database) != self._database_file:
            raise StoreStopped(f"{self._place.database} is gone or was replaced.", "Put back the one that was there.")
        connection = self._files.connect()
        self._use(connection)
        return connection

    def checkpoint(self) -> None:
        """Bring home what is in the write-ahead log as far as readers allow. Raises what SQLite raises."""
        if self._connection is not None:
            total, home = self._connection.wal_checkpoint(None, apsw.SQLITE_CHECKPOINT_PASSIVE)
            self.pages = total - home

    def wipe_log(self) -> None:
        """Empty the write-ahead log, which holds pages as they were before an erasure. Raises what SQLite raises."""
        try:
            self._checkpoint_whole()
        except apsw.BusyError:
            self.checkpoint()  # a reader is in the way; its place is written over soon

    def probe(self) -> None:
        """Find out by a real write whether the store works again. Raises what stands in the way."""
        connection = self._connection or self._reconnect()

        def write(run: Execute) -> None:
            run("INSERT OR REPLACE INTO meta VALUES ('probe', randomblob(?))", (_PROBE_BYTES,))

        def shrink(run: Execute) -> None:
            run("DELETE FROM meta WHERE key = 'probe'")

        for work in (write, shrink):
            self._transaction(connection, lambda work=work: self._together([work]))
        self._look_after()

    def suffered(self, error: apsw.Error) -> int:
        """Do what an error asks for and return the system's number of it."""
        connection = self._connection
        number = connection.system_errno if connection is not None else 0
        if needs_reopening(error) and _inode(self._place.database) == self._database_file:
            self.drop()
        return number

    def drop(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        connection.set_wal_hook(None)
        try:
            connection.close()
        except apsw.Error as error:
            _log.warning("closing the database failed: %s", type(error).__name__)

    def close(self, *, clean: bool) -> None:
        """Close; the mark goes only when everything is in the database."""
        self.drop()
        if clean and not self._place.log.exists():
            self._marker.remove()
        else:
            self._marker.leave()


def _is_accept(work: Work) -> bool:
    return not callable(work) and len(work) == 1 and isinstance(work[0], Accept)


def _as_outcome(error: OperantError | apsw.Error) -> OperantError:
    if isinstance(error, OperantError):
        return error
    return Damaged("A page of the database that this needs is damaged.", CHECK)


def _inode(path: Path) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116  # twice in each commit
    except OSError:
        return 0
