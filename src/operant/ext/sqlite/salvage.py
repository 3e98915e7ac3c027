"""Saving what can be read out of a damaged database into a new one. The damaged file is kept as it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from operant.ext.sqlite.connection import Place, make_private, migrate
from operant.ext.sqlite.rows import EVENT_COLUMNS, body_bytes, checksum, event_of
from operant.kit.sqlite import Database, open_database
from operant.sdk import Broken, Event, Note, Record

_TABLES = ("sessions", "inbox", "outbox", "snapshots", "usage", "kv", "blob_refs")
_ENDINGS = ("", "-wal", "-shm")
_HEADER = 100
_INSERT = f"INSERT OR IGNORE INTO events (n, session, {EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_STRIDE = 256
_MOST_ON_PAGE = 60


class Salvaged(Record):
    """What was saved, and where the damaged file is kept."""

    events: int
    lost: int
    sessions: int
    kept_as: str


class _Kept(NamedTuple):
    """What was saved of one session."""

    at: dict[int, tuple[int, int]]
    """By seq: its number and its time."""


def salvage(directory: Path, stamp: str) -> Salvaged:
    """Write what can be read into a new database and set the damaged one aside. The store must not be open.

    Raises `Broken` when not even the tables can be read; then nothing was changed.
    """
    place = Place(directory)
    aside = directory / f"operant.db.damaged-{stamp}"
    target, working = directory / "operant.db.salvaged", directory / "operant.db.working"
    try:
        _copy_files(place.database, working)
        _remove(target)
        make_private(target)
        saved = _rebuild(working, target)
    except (apsw.Error, OSError) as error:
        _remove(target)
        raise Broken(
            "Nothing can be read of the store.",
            f"Restore {place.database} from a backup, or move it away to begin anew.",
        ) from error
    finally:
        _remove(working)
    for ending in _ENDINGS:
        path = Path(f"{place.database}{ending}")
        if path.exists():
            path.rename(f"{aside}{ending}")
    target.rename(place.database)
    place.marker.unlink(missing_ok=True)
    return Salvaged(events=saved[0], lost=saved[1], sessions=saved[2], kept_as=aside.name)


def _rebuild(working: Path, target: Path) -> tuple[int, int, int]:
    """Return how many events were saved, how many are lost, and of how many sessions."""
    _make_new(target)
    source = _open_damaged(working, target)
    copy = open_database(str(target))
    try:
        source.execute("SELECT n FROM events LIMIT 0").fetchall()  # without its tables nothing can be found
        with copy:
            for table in _TABLES:
                _copy_table(source, copy, table)
            saved, lost = _copy_events(source, copy)
        return saved, lost, int(copy.execute("SELECT count(*) FROM sessions").get)
    finally:
        source.close()
        copy.close()


def _make_new(target: Path) -> None:
    copy = open_database(str(target))
    try:
        migrate(Place(target.parent), copy)
    finally:
        copy.close()


def _open_damaged(working: Path, sound: Path) -> Database:
    """Open the copy of a damaged database, with the header of a sound one (that nobody has open) if its own is gone."""
    source = open_database(str(working))
    try:
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.NotADBError:
        source.close()
        _lend_header(working, sound)
        source = open_database(str(working))
    return source


def _lend_header(working: Path, sound: Path) -> None:
    with sound.open("rb") as file:
        header = bytearray(file.read(_HEADER))
    page = int.from_bytes(header[16:18], "big")
    header[28:32] = (working.stat().st_size // page).to_bytes(4, "big")
    header[18:20] = b"\2\2"  # there may be a write-ahead log
    with working.open("r+b") as file:
        file.write(header)


def _copy_table(source: Database, copy: Database, table: str) -> None:
    """Copy the rows that can be read; the first page that cannot ends it."""
    try:
        for row in source.execute(f"SELECT * FROM {table}"):
            marks = ", ".join("?" * len(row))
            copy.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)
    except apsw.Error:
        return


def _copy_events(source: Database, copy: Database) -> tuple[int, int]:
    """Copy every event that can be read; a note stands where one cannot, so that a history has no holes."""
    kept: dict[int, _Kept] = {}
    keys = {int(row[0]): str(row[1]) for row in copy.execute("SELECT id, key FROM sessions")}
    saved = 0
    for number, session, *rest in _readable(source):
        key = keys.get(session) or _name_session(copy, keys, session, rest)
        event = event_of(key, session, rest)
        if event is None or event.seq in kept.get(session, _Kept({})).at:
            continue
        copy.execute(_INSERT, (number, session, *rest))
        kept.setdefault(session, _Kept({})).at[event.seq] = (number, event.at)
        saved += 1
    return saved, sum(_fill(copy, keys[session], session, one) for session, one in kept.items())


def _name_session(copy: Database, keys: dict[int, str], session: int, row: list[Any]) -> str:
    """Make a row for a session whose own cannot be read; nothing when the event is not sound either."""
    key = f"recovered-{session}"
    if event_of(key, session, row) is not None:
        keys[session] = key
        sql = "INSERT INTO sessions (id, key, agent, created, updated) VALUES (?, ?, '', ?, ?)"
        copy.execute(sql, (session, key, row[3], row[3]))
    return key


def _fill(copy: Database, key: str, session: int, kept: _Kept) -> int:
    """Put a note where an event is lost, and return how many are."""
    lost = [seq for seq in range(1, max(kept.at)) if seq not in kept.at]
    for seq in lost:
        body = Note(kind="lost", text="What stood here was damaged and could not be read.")
        at = next(kept.at[later][1] for later in range(seq, max(kept.at) + 1) if later in kept.at)
        event = Event(session=key, seq=seq, id=f"lost-{session}-{seq}", type=body.type, at=at, body=body)
        data = body_bytes(body)
        row = (seq, event.id, event.type, at, event.turn, event.actor, data, checksum(session, event, data))
        copy.execute(_INSERT, (None, session, *row))
    return len(lost)


def _readable(source: Database) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of all events that can be read, stepping over pages that cannot."""
    last = _last(source)
    at = 0
    while at < last:
        try:
            rows = source.execute(
                f"SELECT n, session, {EVENT_COLUMNS} FROM events NOT INDEXED WHERE n > ? AND n <= ? ORDER BY n",
                (at, at + _STRIDE),
            ).fetchall()
            yield from rows
        except apsw.Error:
            yield from _one_by_one(source, at, at + _STRIDE)
        at += _STRIDE


def _one_by_one(source: Database, start: int, end: int) -> Iterator[tuple[Any, ...]]:
    for number in range(start + 1, end + 1):
        try:
            sql = f"SELECT n, session, {EVENT_COLUMNS} FROM events NOT INDEXED WHERE n = ?"
            yield from source.execute(sql, (number,)).fetchall()
        except apsw.Error:
            continue


def _last(source: Database) -> int:
    """Return the highest number of an event, by the index when the table's own end cannot be read."""
    for sql in ("SELECT max(n) FROM events", "SELECT max(n) FROM events INDEXED BY events_place"):
        try:
            return int(source.execute(sql).get or 0)
        except apsw.Error:
            continue
    return int(source.pragma("page_count")) * _MOST_ON_PAGE


def _copy_files(database: Path, working: Path) -> None:
    """Copy the damaged files: opening them would change them."""
    _remove(working)
    for ending in _ENDINGS[:2]:
        path, copy = Path(f"{database}{ending}"), Path(f"{working}{ending}")
        if path.exists():
            make_private(copy)
            with path.open("rb") as source, copy.open("wb") as file:
                shutil.copyfileobj(source, file)


def _remove(database: Path) -> None:
    for ending in _ENDINGS:
        Path(f"{database}{ending}").unlink(missing_ok=True)
