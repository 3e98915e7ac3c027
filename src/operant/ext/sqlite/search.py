"""Search over the history: an index in a file of its own, never in the way of a write.

It holds nothing that the log does not. Deleted or damaged, it is made again, at rest and when somebody looks.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import apsw

from operant.ext.sqlite.connection import Place, make_private, set_up
from operant.ext.sqlite.pool import Readers
from operant.ext.sqlite.rows import EVENT_COLUMNS, event_of, words_of
from operant.ext.sqlite.trouble import explained
from operant.kit.sqlite import Database, Execute, open_database
from operant.sdk import Damaged, Hit

_BATCH = 500
_STEP_S = 0.05
_CATCH_UP_S = 2.0
_WORDS = 32
_LONGEST = 2_000
_FREQUENT = 20_000
_RECENT = 50_000
_SHOWN = 600
_UNUSABLE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)
_word = re.compile(r"\w+")
_log = logging.getLogger("operant.store")

_SETTINGS = (
    *("mmap_size = 0", "journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON"),
    *("cache_size = -8000", "temp_store = MEMORY"),
)
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
        text, scope, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 2"
    );
"""
_COLUMNS = ", ".join(f"e.{name}" for name in EVENT_COLUMNS.split(", "))
_FROM = f"SELECT e.n, s.key, s.id, {_COLUMNS} FROM events e JOIN sessions s ON s.id = e.session"


class _Words(NamedTuple):
    """The next numbers that the index lacks: what to add, and how far it then goes."""

    rows: list[tuple[int, str, str]]
    upto: int
    crc: int
    """The checksum of the last of them, which tells whether the index and the log still belong together."""


class Index:
    """Find events by words. One thread does everything that concerns the index."""

    def __init__(self, place: Place, readers: Readers, removed: Callable[[Sequence[int]], None]) -> None:
        self._file = IndexFile(place, readers, removed)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="operant-search")
        self._nudged = False
        self._closed = False

    async def find(self, query: str, session: str, limit: int) -> list[Hit]:
        """Return the best hits. Any text is a query: its words are looked for, any of them, the best first."""
        words = list(dict.fromkeys(_word.findall(query[:_LONGEST].casefold())))[:_WORDS]
        sound = [word for word in words if word.isascii() or word.encode("utf-8", "ignore").decode() == word]
        if not sound:
            return []
        work = asyncio.get_running_loop().run_in_executor(self._pool, self._file.find, sound, session, limit)
        try:
            return await work
        except apsw.Error as error:
            raise explained(error) from error

    def nudge(self) -> None:
        """Bring the index on a little; for any thread, and nothing when that is already under way."""
        if not self._nudged and not self._closed:
            self._nudged = True
            try:
                self._pool.submit(self._step)
            except RuntimeError:
                _log.debug("the search index goes on at the next start")

    def close(self) -> None:
        """Wait for what runs, and close."""
        self._closed = True
        self._pool.shutdown(cancel_futures=True)
        self._file.close()

    def _step(self) -> None:
        self._nudged = False
        try:
            if self._file.catch_up(_STEP_S):
                self.nudge()
        except (apsw.Error, Damaged) as error:
            _log.info("the search index waits: %s", error)


class IndexFile:
    """The index; to be used by one thread."""

    def __init__(self, place: Place, readers: Readers, removed: Callable[[Sequence[int]], None]) -> None:
        self._place = place
        self._readers = readers
        self._removed = removed
        self._database: Database | None = None

    def find(self, words: Sequence[str], session: str, limit: int) -> list[Hit]:
        """Return the best hits."""
        self.catch_up(_CATCH_UP_S)
        try:
            numbers = self._match(self._open(), words, session, limit)
        except _UNUSABLE:
            self._start_anew()
            self.catch_up(_CATCH_UP_S)
            numbers = self._match(self._open(), words, session, limit)
        return self._readers.read(lambda run: _hits(run, numbers, words))

    def catch_up(self, seconds: float) -> bool:
        """Index what is new for at most so long; True when there is more. An index that is damaged is begun anew."""
        until = time.monotonic() + seconds
        try:
            return self._catch_up(until)
        except _UNUSABLE:
            self._start_anew()
            return self._catch_up(until)

    def _catch_up(self, until: float) -> bool:
        database = self._open()
        self._remove(database)
        while self._add(database):
            if time.monotonic() > until:
                return True
        return False

    def close(self) -> None:
        """Close the file."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _open(self) -> Database:
        if self._database is not None:
            return self._database
        database = self._database = self._connect()
        upto = _indexed(database)
        identity, known, crc = self._readers.read(lambda run: _home(run, upto))
        if _state(database, "identity") != identity or not known or (crc and crc != _state(database, "crc")):
            # It is of another home, or the home was put back from an older backup.
            self._start_anew()
        return self._database

    def _start_anew(self) -> None:
        self.close()
        for ending in ("", "-wal", "-shm"):
            self._place.search.with_name(self._place.search.name + ending).unlink(missing_ok=True)
        identity, _, _ = self._readers.read(lambda run: _home(run, 0))
        self._database = self._connect()
        self._database.execute("INSERT INTO state VALUES ('identity', ?), ('indexed', 0)", (identity,))

    def _connect(self) -> Database:
        make_private(self._place.search)
        database = open_database(str(self._place.search))
        database.set_busy_timeout(2_000)
        set_up(database, _SETTINGS)
        database.execute(_SCHEMA).fetchall()
        return database

    def _add(self, database: Database) -> bool:
        """Index the next events; False when there are none."""
        done = _indexed(database)
        found = self._readers.read(lambda run: _not_indexed(run, done))
        if found.upto <= done:
            return False
        with database:
            database.executemany("INSERT INTO words (rowid, text, scope) VALUES (?, ?, ?)", found.rows)
            database.execute("INSERT OR REPLACE INTO state VALUES ('indexed', ?), ('crc', ?)", (found.upto, found.crc))
        return True

    def _remove(self, database: Database) -> None:
        """Take out the words of sessions that were erased."""
        erased = self._readers.read(lambda run: [int(row[0]) for row in run("SELECT session FROM erased")])
        if not erased:
            return
        for session in erased:
            sql = "DELETE FROM words WHERE rowid IN (SELECT rowid FROM words WHERE words MATCH ?)"
            database.execute(sql, (f'scope : "s{session}"',))
        database.execute("INSERT INTO words (words) VALUES ('optimize')")  # only this takes the words off the disk
        self._removed(erased)

    def _match(self, database: Database, words: Sequence[str], session: str, limit: int) -> list[int]:
        """Return the numbers of the best events."""
        scope = ""
        if session:
            number = self._readers.read(lambda run: run("SELECT id FROM sessions WHERE key = ?", (session,)).get)
            scope = f'scope : "s{number}" AND '
        rare, since = list(words), 0
        if not scope and _indexed(database) > _RECENT:
            # Scoring what half of all events have takes a second: rare words decide, else only what is recent counts.
            rare = [word for word in words if _is_rare(database, word)]
            since = 0 if rare else _indexed(database) - _RECENT
        match = f"{scope}text : ({' OR '.join(map(_quoted, rare or words))})"
        sql = "SELECT rowid FROM words WHERE words MATCH ? AND rowid > ? AND rank MATCH 'bm25(1.0, 0.0)' "
        return [int(row[0]) for row in database.execute(f"{sql} ORDER BY rank LIMIT ?", (match, since, limit or -1))]


def _quoted(word: str) -> str:
    return f'"{word}"'


def _is_rare(database: Database, word: str) -> bool:
    sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
    return int(database.execute(sql, (f"text : {_quoted(word)}", _FREQUENT)).get) < _FREQUENT


def _state(database: Database, key: str) -> Any:
    return database.execute("SELECT value FROM state WHERE key = ?", (key,)).get


def _indexed(database: Database) -> int:
    return int(_state(database, "indexed") or 0)


def _home(run: Execute, upto: int) -> tuple[str, bool, int]:
    """Return whose history it is, whether it has got to a number, and the checksum of the event there, if any."""
    identity = run("SELECT value FROM meta WHERE key = 'identity'").get
    sql = "SELECT max((SELECT coalesce(max(n), 0) FROM events), (SELECT value FROM meta WHERE key = 'floor'))"
    known = int(run(sql).get) >= upto
    return str(identity), known, int(run("SELECT crc FROM events WHERE n = ?", (upto,)).get or 0)


def _not_indexed(run: Execute, done: int) -> _Words:
    """Return the next events that the index does not have, with their words."""
    rows = run(f"{_FROM} WHERE e.n > ? ORDER BY e.n LIMIT ?", (done, _BATCH)).fetchall()
    found: list[tuple[int, str, str]] = []
    for row in rows:
        event = event_of(row[1], row[2], row[3:])
        words = words_of(event) if event else ""
        if words:
            found.append((row[0], words, f"s{row[2]}"))
    return _Words(found, rows[-1][0] if rows else done, rows[-1][-1] if rows else 0)


def _hits(run: Execute, numbers: Sequence[int], words: Sequence[str]) -> list[Hit]:
    """Read the events of a search; one that is damaged or was erased meanwhile is left out."""
    hits: list[Hit] = []
    for number in numbers:
        row = next(iter(run(f"{_FROM} WHERE e.n = ?", (number,))), None)
        event = event_of(row[1], row[2], row[3:]) if row else None
        if event is not None:
            text = _excerpt(words_of(event), words)
            hits.append(Hit(session=event.session, seq=event.seq, at=event.at, type=event.type, text=text))
    return hits


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return a long text's stretch around the first word that was looked for."""
    if len(text) <= _SHOWN:
        return text
    places = [place for place in (text.casefold().find(word) for word in words) if place >= 0]
    start = max(0, min(places, default=0) - _SHOWN // 4)
    return f"{'… ' if start else ''}{text[start : start + _SHOWN]}{' …' if start + _SHOWN < len(text) else ''}"
