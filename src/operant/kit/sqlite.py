"""SQLite through apsw, with types: what we use of a connection, and how one is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, cast

import apsw

Row = tuple[Any, ...]


class Rows(Protocol):
    """What a statement returns."""

    @property
    def get(self) -> Any:
        """Return the only value of the first row, or None."""
        ...

    def __iter__(self) -> Iterator[Row]: ...

    def fetchall(self) -> list[Row]:
        """Return all rows."""
        ...


class Execute(Protocol):
    """Run a statement."""

    def __call__(self, statements: str, bindings: tuple[Any, ...] | None = None) -> Rows: ...


class Database(Protocol):
    """A connection; `with` makes a savepoint."""

    execute: Execute
    in_transaction: bool
    system_errno: int

    def executemany(self, statements: str, sequenceofbindings: Iterable[tuple[Any, ...]]) -> Rows:
        """Run a statement once for each row of values."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *reason: object) -> bool | None: ...

    def close(self) -> None:
        """Close."""
        ...

    def changes(self) -> int:
        """Count the rows that the last statement changed."""
        ...

    def set_busy_timeout(self, milliseconds: int) -> None:
        """Wait so long for another connection's lock."""
        ...

    def set_wal_hook(self, hook: Callable[[Any, str, int], int] | None, /) -> None:
        """Be told after each commit how many pages the write-ahead log has."""
        ...

    def wal_checkpoint(self, dbname: str | None = None, mode: int = 0) -> tuple[int, int]:
        """Bring the write-ahead log home; return its pages and how many are home."""
        ...

    def pragma(self, name: str, value: int | None = None) -> Any:
        """Read or set a setting."""
        ...

    def backup(self, databasename: str, sourceconnection: Any, sourcedatabasename: str) -> Any:
        """Copy another connection's database into this one."""
        ...


def open_database(path: str, *, read_only: bool = False, make: bool = True) -> Database:
    """Open a database that exists, or is made where `make` allows it. Raises what SQLite raises."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    if make and not read_only:
        flags |= apsw.SQLITE_OPEN_CREATE
    return cast(Database, apsw.Connection(path, flags=flags))


def copy_database(source: Database, path: str) -> None:
    """Copy a database as it stands now into another file, which is made or overwritten."""
    copy = open_database(path)
    try:
        with copy.backup("main", source, "main") as backup:
            backup.step()
    finally:
        copy.close()
