"""Opening the database: rights, settings, migrations with a backup before, and the marks of an unclean end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import apsw

from operant.ext.sqlite.schema import MIGRATIONS
from operant.ext.sqlite.writer import explained
from operant.kit.sqlite import Database, open_database
from operant.sdk import Broken, Unavailable

Durability = Literal["power", "process"]
_SAFE_SQLITE = (3, 51, 3)
"""Older ones can corrupt the file when two connections reset its log at once."""


class Place:
    """Where a store's files are."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "operant.db"
        self.log = directory / "operant.db-wal"
        self.marker = directory / "operant.db.open"
        self.blobs = directory / "blobs"

    def prepare(self) -> None:
        """Make what is missing, for its owner only. Raises `Unavailable`."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.blobs.mkdir(mode=0o700, exist_ok=True)
            if not self.database.exists():
                # Made before SQLite opens it: never open it by other means once it is a database.
                os.close(os.open(self.database, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            raise Unavailable(
                f"The store cannot be made in {self.directory}: {error.strerror}.", "Make the home writable."
            ) from error

    def lost_log(self) -> bool:
        """Tell whether a process ended without closing and its write-ahead log is gone."""
        return self.marker.exists() and not self.log.exists()


def connect(place: Place, durability: Durability) -> Database:
    """Open the writer's connection. Raises what SQLite raises."""
    connection = open_database(str(place.database))
    connection.set_busy_timeout(2_000)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
    connection.execute("PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA foreign_keys = OFF; PRAGMA mmap_size = 0")
    return connection


def connect_reader(place: Place) -> Database:
    """Open a connection that cannot write."""
    connection = open_database(str(place.database), read_only=True)
    connection.set_busy_timeout(2_000)
    connection.execute("PRAGMA query_only = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -8000")
    return connection


def migrate(place: Place, durability: Durability) -> None:
    """Bring the database to this program's version. Raises `Broken` or `StoreStopped`."""
    if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < _SAFE_SQLITE:
        raise Broken(
            f"SQLite {apsw.sqlite_lib_version()} can damage databases.", "Install a newer apsw: pip install -U apsw."
        )
    try:
        connection = connect(place, durability)
        try:
            _migrate(place, connection)
        finally:
            connection.close()
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise Broken(
            f"{place.database} is damaged and cannot be opened.",
            "Nothing was changed. Run `operant doctor --repair`, which saves what can be read.",
        ) from error
    except apsw.Error as error:
        raise explained(error) from error


def _migrate(place: Place, connection: Database) -> None:
    version = int(connection.pragma("user_version") or 0)
    if version > len(MIGRATIONS):
        raise Broken(
            f"This home was used by a newer Operant (schema {version}; this one knows {len(MIGRATIONS)}).",
            "Install the newer version, or use another home.",
        )
    if version == len(MIGRATIONS):
        return
    if version > 0:
        _back_up(place, connection, version)
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        with connection:
            connection.execute(script)
            connection.pragma("user_version", number)


def _back_up(place: Place, connection: Database, version: int) -> None:
    target = place.database.with_name(f"operant.db.v{version}.bak")
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    copy = open_database(str(target))
    try:
        with copy.backup("main", connection, "main") as backup:
            backup.step()
    finally:
        copy.close()
