"""Looking the store over for `operant doctor`; nothing here changes anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from operant.ext.sqlite.blobs import BlobFiles
from operant.ext.sqlite.connection import SAFE_SQLITE, Place, sqlite_version
from operant.ext.sqlite.rows import EVENT_COLUMNS, event_of
from operant.ext.sqlite.schema import MIGRATIONS
from operant.ext.sqlite.trouble import DAMAGE
from operant.kit.sqlite import Execute
from operant.sdk import Finding

_BATCH = 500
_SOME_EVENTS = 50_000
_SOME_BLOBS = 2_000
_NAMED = 5
_LEAST_FREE = 200 * 2**20
_OTHERS = 0o077
_REPAIR = "Stop Operant and run `operant doctor --repair`: it saves what can be read."


def look_over(place: Place, blobs: BlobFiles, full: bool, run: Execute) -> list[Finding]:
    """Return what was looked at; without `full` only the newest events and some blobs."""
    return [
        _schema(run),
        _rights(place),
        _structure(run, full),
        _events(run, full),
        _blobs(run, blobs, full),
        _space(place),
    ]


def _schema(run: Execute) -> Finding:
    version, sqlite = run("PRAGMA user_version").get, ".".join(map(str, sqlite_version()))
    safe, known = sqlite_version() >= SAFE_SQLITE, version == len(MIGRATIONS)
    hint = "" if safe else "pip install -U apsw"
    return Finding(name="schema", ok=safe and known, sentence=f"schema {version}, SQLite {sqlite}", hint=hint)


def _rights(place: Place) -> Finding:
    files = [place.directory, place.blobs, place.database, place.log, place.memory, place.marker, place.search]
    loose = [path.name for path in files if path.exists() and path.stat().st_mode & _OTHERS]
    if not loose:
        return Finding(name="rights", ok=True, sentence="for you alone")
    names = ", ".join(loose)
    return Finding(name="rights", ok=False, sentence=f"Others can read {names}.", hint="chmod go= on them.")


def _structure(run: Execute, full: bool) -> Finding:
    try:
        said = [str(row[0]) for row in run(f"PRAGMA {'integrity' if full else 'quick'}_check({_NAMED})")]
    except DAMAGE as error:
        said = [str(error)]
    if said == ["ok"]:
        return Finding(name="structure", ok=True, sentence="the database is whole")
    return Finding(name="structure", ok=False, sentence=f"The database is damaged: {said[0]}.", hint=_REPAIR)


def _events(run: Execute, full: bool) -> Finding:
    """Compare events with their checksums."""
    try:
        last = int(run("SELECT coalesce(max(n), 0) FROM events").get)
        start = 0 if full else max(0, last - _SOME_EVENTS)
        bad = [f"{key} event {seq}" for key, seq in _unsound(run, start)]
    except DAMAGE as error:
        return Finding(name="events", ok=False, sentence=f"Events cannot be read: {error}.", hint=_REPAIR)
    if bad:
        names = ", ".join(bad[:_NAMED]) + (f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else "")
        return Finding(name="events", ok=False, sentence=f"Damaged and left out: {names}.", hint=_REPAIR)
    looked = f"{last:,} events are" if not start else f"the newest {_SOME_EVENTS:,} events are"
    return Finding(name="events", ok=True, sentence=f"{looked} as they were written")


def _unsound(run: Execute, start: int) -> Iterator[tuple[str, int]]:
    columns = ", ".join(f"+e.{name}" for name in EVENT_COLUMNS.split(", "))  # `+`: from the table, not from an index
    sql = (
        f"SELECT e.n, e.session, coalesce(s.key, '?'), {columns} FROM events e NOT INDEXED "
        "LEFT JOIN sessions s ON s.id = e.session WHERE e.n > ? ORDER BY e.n LIMIT ?"
    )
    while rows := run(sql, (start, _BATCH)).fetchall():
        yield from ((row[2], row[3]) for row in rows if event_of(row[2], row[1], row[3:]) is None)
        start = rows[-1][0]


def _blobs(run: Execute, blobs: BlobFiles, full: bool) -> Finding:
    wanted = [
        str(row[0]) for row in run("SELECT DISTINCT digest FROM blob_refs LIMIT ?", (-1 if full else _SOME_BLOBS,))
    ]
    bad = [digest[:12] for digest in wanted if not blobs.sound(digest, read=full)]
    if bad:
        words = f"{len(bad)} of {len(wanted)} are missing or damaged: {', '.join(bad[:_NAMED])}"
        return Finding(name="blobs", ok=False, sentence=words, hint="Restore them from a backup.")
    words = "files are what their names say" if full else "files are there"
    return Finding(name="blobs", ok=True, sentence=f"{len(wanted):,} {words}")


def _space(place: Place) -> Finding:
    free = shutil.disk_usage(place.directory).free
    ok = free >= _LEAST_FREE
    hint = "" if ok else "Free some: the store stops when the disk is full."
    return Finding(name="space", ok=ok, sentence=f"{free // 2**20:,} MB are free", hint=hint)
