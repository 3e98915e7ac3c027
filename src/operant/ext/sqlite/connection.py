"""Opening the database: rights, settings, and migrations with a backup before."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import apsw

from operant.ext.sqlite.schema import MIGRATIONS
from operant.ext.sqlite.trouble import DAMAGE, explained
from operant.kit.sqlite import Database, copy_database, open_database
from operant.sdk import Broken, StoreStopped

Durability = Literal["power", "process"]
SAFE_SQLITE = (3, 51, 3)
"""Older ones can corrupt the file when two connections reset its log at once."""

_OURS = 0x4F505231
"""`application_id`: tells our database from another program's."""
_REPAIR = "Nothing was changed. Run `operant doctor --repair`, which saves what can be read."


class Place:
    """Where a store's files are. Only SQLite opens the database once it exists; others would cancel its locks."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "operant.db"
        self.log = directory / "operant.db-wal"
        self.memory = directory / "operant.db-shm"
        self.marker = directory / "operant.db.open"
        self.search = directory / "search.db"
        self.blobs = directory / "blobs"

    def prepare(self, *, used_before: bool) -> None:
        """Make what is missing, for its owner only. Raises `Broken` where a database was, `StoreStopped` otherwise."""
        try:
            for directory in (self.directory, self.blobs):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                close_to_others(directory)
            if not _size(self.database) and (used_before or _size(self.log)):
                # An empty database beside a log makes SQLite delete the log.
                raise Broken(
                    f"{self.database} is gone or empty, and there was one.",
                    f"Nothing was changed. Put it back from a backup, or move {self.directory} away to begin anew.",
                )
            make_private(self.database)
        except OSError as error:
            raise StoreStopped(
                f"The store cannot be made in {self.directory}: {error.strerror}.", "Make the home writable."
            ) from error


def make_private(path: Path) -> None:
    """Make a file that only its owner can read, before SQLite opens it; one that is there is closed to others."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        close_to_others(path)


def close_to_others(path: Path) -> None:
    """Take away everybody else's rights where there are any."""
    mode = path.stat().st_mode
    if mode & 0o077:
        path.chmod(mode & 0o700)


def connect(place: Place, durability: Durability) -> Database:
    """Open the writer's connection; the database must exist. Raises what SQLite raises."""
    connection = open_database(str(place.database), make=False)
    connection.set_busy_timeout(2_000)
    settings = (
        "mmap_size = 0",
        "cell_size_check = ON",
        "trusted_schema = OFF",
        "journal_mode = WAL",
        f"synchronous = {'FULL' if durability == 'power' else 'NORMAL'}",
        "wal_autocheckpoint = 0",  # checkpoints are the writer's: after a commit was reported, never within one
        "secure_delete = ON",  # what is erased leaves no bytes
        "cache_size = -8000",
        "temp_store = MEMORY",
    )
    set_up(connection, settings)
    return connection


def connect_reader(place: Place) -> Database:
    """Open a connection that cannot write."""
    connection = open_database(str(place.database), read_only=True)
    connection.set_busy_timeout(2_000)
    set_up(connection, ("query_only = ON", "mmap_size = 0", "cache_size = -8000"))
    return connection


def set_up(connection: Database, settings: Iterable[str]) -> None:
    """Make settings, each to its end: a statement that returns a row holds up those after it. Closes on failure."""
    try:
        for setting in settings:
            connection.execute(f"PRAGMA {setting}").fetchall()
    except BaseException:
        connection.close()
        raise


def open_migrated(place: Place, durability: Durability) -> Database:
    """Open the writer's connection and bring the database to this version. Raises `Broken` or `StoreStopped`."""
    if sqlite_version() < SAFE_SQLITE:
        raise Broken(
            f"SQLite {apsw.sqlite_lib_version()} can damage databases.", "Install a newer apsw: pip install -U apsw."
        )
    try:
        connection = connect(place, durability)
        try:
            migrate(place, connection)
        except BaseException:
            connection.close()
            raise
    except DAMAGE as error:
        raise Broken(f"{place.database} is damaged and cannot be opened.", _REPAIR) from error
    except apsw.Error as error:
        raise explained(error) from error
    return connection


def sqlite_version() -> tuple[int, ...]:
    """Return the version of the SQLite that is linked."""
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


def migrate(place: Place, connection: Database) -> None:
    """Run the migrations that a database lacks, each whole or not at all, with a copy of what was before."""
    version = int(connection.pragma("user_version") or 0)
    _check_owner(place, connection, version)
    if version == len(MIGRATIONS):
        return
    if version > 0:
        _back_up(place, connection, version)
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        with connection:
            connection.execute(script)
            connection.pragma("application_id", _OURS)
            connection.pragma("user_version", number)


def _check_owner(place: Place, connection: Database, version: int) -> None:
    known = len(MIGRATIONS)
    if version > known:
        raise Broken(
            f"This home was used by a newer Operant (schema {version}; this one knows {known}).",
            f"Install the newer version, or put back `operant.db.v{known}.bak` if it is there.",
        )
    owner = int(connection.pragma("application_id") or 0)
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if owner != _OURS and tables:
        raise Broken(f"{place.database} is a database of another program.", "Move it away.")


def _back_up(place: Place, connection: Database, version: int) -> None:
    target = place.database.with_name(f"operant.db.v{version}.bak")
    target.unlink(missing_ok=True)
    make_private(target)
    copy_database(connection, str(target))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
