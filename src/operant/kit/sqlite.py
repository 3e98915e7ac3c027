"""SQLite through apsw, with types: what we use of a connection, and how one is opened."""

from __future__ import annotations

from collections.abc import Iterator
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

    def __enter__(self) -> Any: ...

    def __exit__(self, *reason: object) -> bool | None: ...

    def close(self) -> None:
        """Close."""
        ...

    def set_busy_timeout(self, milliseconds: int) -> None:
        """Wait so long for another connection's lock."""
        ...

    def pragma(self, name: str, value: int | None = None) -> Any:
        """Read or set a setting."""
        ...

    def backup(self, databasename: str, sourceconnection: Any, sourcedatabasename: str) -> Any:
        """Copy another connection's database into this one."""
        ...


def open_database(path: str, *, read_only: bool = False) -> Database:
    """Open a database that exists or is to be made. Raises what SQLite raises."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    return cast(Database, apsw.Connection(path, flags=flags))
