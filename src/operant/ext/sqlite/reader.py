"""Reading: a thread of its own with a connection that cannot write, so that a long read holds nobody up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import apsw
import msgspec

from operant.ext.sqlite.connection import Place, connect_reader
from operant.ext.sqlite.rows import EVENT_COLUMNS, event_of
from operant.ext.sqlite.writer import explained
from operant.kit.sqlite import Database, Execute
from operant.sdk import Damaged, Event, Head, InboxItem, OutboxItem, SessionInfo, Snapshot, Usage, UsageRow

T = TypeVar("T")
Run = Execute

_READERS = 2
_inbox = msgspec.json.Decoder(InboxItem).decode
_outbox = msgspec.json.Decoder(OutboxItem).decode
_OUTBOX = "item, state, attempts, next_at, expires, error, platform_id"
_INBOX = "item, state, seq, reason"
_SESSION = "key, agent, channel, chat, thread, title, model, parent, created, updated, archived, open, damaged, id"
_SUMS = "sum(input), sum(cached), sum(cache_write), sum(output), sum(reasoning), sum(calls), sum(usd)"


class Readers:
    """Run reads in threads."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="operant-read")
        self._own = threading.local()
        self._connections: list[Database] = []

    async def run(self, read: Callable[[Run], T]) -> T:
        """Return what a read finds. Raises `Damaged` or `StoreStopped`."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._run, read)

    async def blocking(self, work: Callable[[], T]) -> T:
        """Run file work that is not SQL."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Wait for what runs, and close."""
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()

    def _run(self, read: Callable[[Run], T]) -> T:
        connection: Database | None = getattr(self._own, "connection", None)
        try:
            if connection is None:
                connection = self._own.connection = connect_reader(self._place)
                self._connections.append(connection)
            return read(connection.execute)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise Damaged("A page of the database is damaged.", "Run `operant doctor`.") from error
        except apsw.Error as error:
            raise explained(error) from error


# ---------------------------------------------------------------------------- reads


def number_of(run: Run, key: str) -> int | None:
    """Return a session's number."""
    return run("SELECT id FROM sessions WHERE key = ?", (key,)).get


def events(run: Run, key: str, after: int, limit: int) -> tuple[list[Event], list[int]]:
    """Return a session's events, and the seqs of those that are not as they were written."""
    session = number_of(run, key)
    found: list[Event] = []
    damaged: list[int] = []
    if session is None:
        return found, damaged
    sql = f"SELECT {EVENT_COLUMNS} FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
    for row in run(sql, (session, after, limit or -1)):
        event = event_of(key, session, row)
        if event is None:
            damaged.append(int(row[0]))
        else:
            found.append(event)
    return found, damaged


def head(run: Run, key: str) -> Head | None:
    """Return where a session ends."""
    row = next(iter(run(f"SELECT {_SESSION} FROM sessions WHERE key = ?", (key,))), None)
    if row is None:
        return None
    info = session_of(run, row)
    kept = next(iter(run("SELECT seq, version, data FROM snapshots WHERE session = ?", (row[13],))), None)
    snapshot = Snapshot(session=key, seq=kept[0], version=kept[1], data=kept[2]) if kept else None
    return Head(info=info, seq=info.events, snapshot=snapshot)


def session_of(run: Run, row: Any) -> SessionInfo:
    """Return a session as lists show it, from a row of `_SESSION`."""
    end = run("SELECT seq FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1", (row[13],)).get
    sums = next(iter(run(f"SELECT {_SUMS} FROM usage WHERE session = ?", (row[0],))))
    state = "damaged" if row[12] else "archived" if row[10] else "open" if row[11] else "idle"
    return SessionInfo(
        key=row[0],
        agent=row[1],
        channel=row[2],
        chat=row[3],
        thread=row[4],
        title=row[5],
        model=row[6],
        parent=row[7],
        created=row[8],
        updated=row[9],
        events=end or 0,
        state=state,
        usage=_usage(sums),
    )


def sessions(run: Run, limit: int, before: int, archived: bool, agent: str) -> list[SessionInfo]:
    """List sessions, the last changed first."""
    rows = run(
        f"SELECT {_SESSION} FROM sessions WHERE archived = ? AND (? = 0 OR updated < ?) AND (? = '' OR agent = ?) "
        "ORDER BY updated DESC LIMIT ?",
        (int(archived), before, before, agent, agent, limit),
    ).fetchall()
    return [session_of(run, row) for row in rows]


def unfinished(run: Run) -> list[str]:
    """List the sessions with something to do."""
    sql = "SELECT key FROM sessions WHERE open = 1 UNION SELECT session FROM inbox WHERE state = 'waiting'"
    return [row[0] for row in run(sql)]


def inbox(run: Run, where: str, arguments: tuple[Any, ...]) -> list[InboxItem]:
    """List inbox items, oldest first."""
    return [
        _inbox_item(row) for row in run(f"SELECT {_INBOX} FROM inbox WHERE {where} ORDER BY accepted, id", arguments)
    ]


def outbox(run: Run, where: str, arguments: tuple[Any, ...]) -> list[OutboxItem]:
    """List outbox items, oldest first."""
    return [_outbox_item(row) for row in run(f"SELECT {_OUTBOX} FROM outbox WHERE {where}", arguments)]


def usage(run: Run, since_day: str) -> list[UsageRow]:
    """Return usage from a day on."""
    columns = "day, session, agent, user, model, purse, input, cached, cache_write, output, reasoning, calls, usd"
    return [
        UsageRow(
            day=row[0], session=row[1], agent=row[2], user=row[3], model=row[4], purse=row[5], usage=_usage(row[6:])
        )
        for row in run(f"SELECT {columns} FROM usage WHERE day >= ?", (since_day,))
    ]


def _inbox_item(row: Any) -> InboxItem:
    return msgspec.structs.replace(_inbox(row[0]), state=row[1], seq=row[2], reason=row[3])


def _outbox_item(row: Any) -> OutboxItem:
    return msgspec.structs.replace(
        _outbox(row[0]), state=row[1], attempts=row[2], next_at=row[3], expires=row[4], error=row[5], platform_id=row[6]
    )


def _usage(row: Any) -> Usage:
    values = [value or 0 for value in row]
    return Usage(
        input=values[0],
        cached=values[1],
        cache_write=values[2],
        output=values[3],
        reasoning=values[4],
        calls=values[5],
        usd=values[6] or 0.0,
    )
