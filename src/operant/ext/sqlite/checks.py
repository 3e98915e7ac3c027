"""Looking the store over, and saving what can be read out of a damaged one."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from operant.ext.sqlite.blobs import BlobFiles
from operant.ext.sqlite.connection import Place
from operant.ext.sqlite.rows import EVENT_COLUMNS, event_of
from operant.ext.sqlite.schema import MIGRATIONS
from operant.kit.sqlite import Database, Execute, open_database
from operant.sdk import Broken, Damaged, Finding, NotFound, Record, StoreStopped

_PRIVATE = 0o077
_TABLES = ("sessions", "inbox", "outbox", "snapshots", "usage", "kv", "blob_refs")
_REPAIR = "Stop Operant and run `operant doctor --repair`: it saves what can be read."


def look_over(run: Execute, place: Place, full: bool) -> list[Finding]:
    """Return what was looked at."""
    version = run("PRAGMA user_version").get
    findings = [
        Finding(name="schema", ok=version == len(MIGRATIONS), sentence=f"schema {version}, SQLite {_sqlite()}"),
        _rights(place),
        _structure(run, full),
    ]
    if full:
        findings += [_events(run), _blobs(run, BlobFiles(place.blobs, sync=False))]
    return findings


def _sqlite() -> str:
    return apsw.sqlite_lib_version()


def _rights(place: Place) -> Finding:
    open_to_others = [
        path.name
        for path in (place.directory, place.database, place.blobs)
        if path.exists() and path.stat().st_mode & _PRIVATE
    ]
    if open_to_others:
        names = ", ".join(open_to_others)
        return Finding(name="rights", ok=False, sentence=f"Others can read {names}.", hint="chmod go= on them.")
    return Finding(name="rights", ok=True, sentence="for you alone")


def _structure(run: Execute, full: bool) -> Finding:
    try:
        said = [str(row[0]) for row in run("PRAGMA integrity_check(5)" if full else "PRAGMA quick_check(5)")]
    except apsw.Error as error:
        said = [str(error)]
    if said == ["ok"]:
        return Finding(name="structure", ok=True, sentence="the database is whole")
    return Finding(name="structure", ok=False, sentence=f"The database is damaged: {said[0]}.", hint=_REPAIR)


def _events(run: Execute) -> Finding:
    bad: list[str] = []
    count = 0
    columns = ", ".join(f"e.{name}" for name in EVENT_COLUMNS.split(", "))
    for row in run(f"SELECT s.key, s.id, {columns} FROM events e JOIN sessions s ON s.id = e.session"):
        count += 1
        if event_of(row[0], row[1], row[2:]) is None:
            bad.append(f"{row[0]} event {row[2]}")
    if bad:
        names = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        return Finding(name="events", ok=False, sentence=f"Damaged and left out: {names}.", hint=_REPAIR)
    return Finding(name="events", ok=True, sentence=f"{count:,} events are as they were written")


def _blobs(run: Execute, blobs: BlobFiles) -> Finding:
    bad: list[str] = []
    wanted = [str(row[0]) for row in run("SELECT DISTINCT digest FROM blob_refs WHERE digest <> ''")]
    for digest in wanted:
        try:
            blobs.get(digest)
        except (Damaged, NotFound, StoreStopped) as error:
            bad.append(error.sentence)
    if bad:
        words = f"{len(bad)} of {len(wanted)}: {bad[0]}"
        return Finding(name="blobs", ok=False, sentence=words, hint="Restore them from a backup.")
    return Finding(name="blobs", ok=True, sentence=f"{len(wanted):,} files are what their names say")


# ---------------------------------------------------------------------------- salvage


class Salvaged(Record):
    """What was saved, and where the damaged file is kept."""

    events: int
    lost: int
    sessions: int
    kept_as: str


def salvage(directory: Path, stamp: str) -> Salvaged:
    """Write what can be read into a new database and set the damaged one aside. The store must not be open.

    Raises `Broken` when not even the tables can be read; then nothing was changed.
    """
    place = Place(directory)
    target = directory / "operant.db.salvaged"
    for path in (target, Path(f"{target}-wal"), Path(f"{target}-shm")):
        path.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    source, copy = open_database(str(place.database)), open_database(str(target))
    try:
        saved, lost = _copy(source, copy)
        sessions = copy.execute("SELECT count(*) FROM sessions").get
    except apsw.Error as error:
        raise Broken(
            "Nothing can be read of the store.",
            f"Restore {place.database} from a backup, or move it away to begin anew.",
        ) from error
    finally:
        source.close()
        copy.close()
    aside = directory / f"operant.db.damaged-{stamp}"
    for suffix in ("", "-wal", "-shm"):
        path = Path(f"{place.database}{suffix}")
        if path.exists():
            path.rename(f"{aside}{suffix}")
    target.rename(place.database)
    place.marker.unlink(missing_ok=True)
    return Salvaged(events=saved, lost=lost, sessions=sessions, kept_as=aside.name)


def _copy(source: Database, copy: Database) -> tuple[int, int]:
    for script in MIGRATIONS:
        copy.execute(script)
    copy.pragma("user_version", len(MIGRATIONS))
    with copy:
        for table in _TABLES:
            _copy_table(source, copy, table)
        saved, lost = _copy_events(source, copy)
    return saved, lost


def _copy_table(source: Database, copy: Database, table: str) -> None:
    """Copy the rows that can be read; the first page that cannot ends it."""
    try:
        for row in source.execute(f"SELECT * FROM {table}"):
            marks = ", ".join("?" * len(row))
            copy.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)
    except apsw.Error:
        return


def _copy_events(source: Database, copy: Database) -> tuple[int, int]:
    """Copy each session's events up to its first gap, so that what is saved is a history without holes."""
    saved = lost = 0
    last = source.execute("SELECT max(n) FROM events").get or 0
    ends: dict[int, int] = {}
    keys = {row[0]: row[1] for row in copy.execute("SELECT id, key FROM sessions")}
    number = 0
    while number < last:
        number += 1
        try:
            row = next(
                iter(source.execute(f"SELECT session, {EVENT_COLUMNS} FROM events WHERE n = ?", (number,))), None
            )
        except apsw.Error:
            lost += 1
            continue
        if row is None:
            continue
        session, seq = row[0], row[1]
        whole = session in keys and event_of(keys[session], session, row[1:]) is not None
        if not whole or seq != ends.get(session, 0) + 1:
            lost += 1
            continue
        ends[session] = seq
        saved += 1
        copy.execute(
            f"INSERT INTO events (n, session, {EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *row)
        )
    return saved, lost
