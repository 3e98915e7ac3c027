"""Search over the history: an index that catches up when somebody looks, never in the way of a write.

It holds nothing that the log does not; deleted, it is made again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from operant.ext.sqlite.reader import Readers, Run
from operant.ext.sqlite.rows import EVENT_COLUMNS, event_of, words_of
from operant.sdk import Hit

if TYPE_CHECKING:
    from operant.ext.sqlite.writer import Writer

_BATCH = 2_000
_WORDS = 64
_LONGEST = 2_000
_word = re.compile(r"\w+")


class Index:
    """Find events by words."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def find(self, query: str, session: str, limit: int) -> list[Hit]:
        """Return the best hits. Any text is a query: its words are looked for, any of them, the best first."""
        words = list(dict.fromkeys(_word.findall(query[:_LONGEST].casefold())))[:_WORDS]
        if not words:
            return []
        await self._catch_up()
        match = " OR ".join(f'"{word}"' for word in words)
        return await self._readers.run(lambda run: _hits(run, match, session, limit))

    async def _catch_up(self) -> None:
        while rows := await self._readers.run(_not_indexed):
            await self._writer.index(rows)


def _not_indexed(run: Run) -> list[tuple[int, str]]:
    """Return the next events that the index does not have, with their words."""
    done = run("SELECT value FROM meta WHERE key = 'indexed'").get or 0
    columns = ", ".join(f"e.{name}" for name in EVENT_COLUMNS.split(", "))
    sql = (
        f"SELECT e.n, s.key, s.id, {columns} FROM events e JOIN sessions s ON s.id = e.session "
        "WHERE e.n > ? ORDER BY e.n LIMIT ?"
    )
    rows: list[tuple[int, str]] = []
    for row in run(sql, (done, _BATCH)):
        event = event_of(row[1], row[2], row[3:])
        rows.append((row[0], words_of(event) if event else ""))
    return rows


def _hits(run: Run, match: str, session: str, limit: int) -> list[Hit]:
    sql = (
        "SELECT s.key, e.seq, e.at, e.type, snippet(words, 0, '', '', ' … ', 40) FROM words "
        "JOIN events e ON e.n = words.rowid JOIN sessions s ON s.id = e.session "
        "WHERE words MATCH ? AND (? = '' OR s.key = ?) ORDER BY rank LIMIT ?"
    )
    found = run(sql, (match, session, session, limit))
    return [Hit(session=row[0], seq=row[1], at=row[2], type=row[3], text=row[4]) for row in found]
