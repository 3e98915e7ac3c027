"""What is read: every query over the history and its lists."""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from operant.ext.sqlite.rows import EVENT_COLUMNS, event_of
from operant.kit.sqlite import Execute
from operant.sdk import Damaged, Event, Head, InboxItem, OutboxItem, SessionInfo, Snapshot, Usage, UsageRow

Run = Execute

_CHUNK = 256
_rows = msgspec.json.Decoder(list[list[Any]]).decode
_inbox = msgspec.json.Decoder(InboxItem).decode
_outbox = msgspec.json.Decoder(OutboxItem).decode
_OUTBOX = "item, state, attempts, next_at, expires, error, platform_id"
_INBOX = "item, state, seq, reason"
_SESSION = "key, agent, channel, chat, thread, title, model, parent, created, updated, archived, open, damaged, id"
_SUMS = "sum(input), sum(cached), sum(cache_write), sum(output), sum(reasoning), sum(calls), sum(usd)"
_PLACE = "FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
_ONE_BY_ONE = f"SELECT {EVENT_COLUMNS} {_PLACE}"
_AT_ONCE = (
    "SELECT json_group_array(json_array(seq, id, type, at, turn, actor, CAST(body AS TEXT), crc)) "
    f"FROM (SELECT {EVENT_COLUMNS} {_PLACE})"
)
"""Many rows in one step: between two steps a thread has to wait for the interpreter, which a busy loop holds."""


class Page(NamedTuple):
    """Which values are listed: those whose keys begin so, after a key (None: from the first), so many (0: all)."""

    prefix: str
    after: str | None
    limit: int


class Lost(NamedTuple):
    """An event that cannot be read: what its row holds, or nothing where there is no row."""

    seq: int
    row: tuple[Any, ...] | None


class Read(NamedTuple):
    """A stretch of a history."""

    events: list[Event]
    lost: list[Lost]


def number_of(run: Run, key: str) -> int | None:
    """Return a session's number."""
    return run("SELECT id FROM sessions WHERE key = ?", (key,)).get


def events(run: Run, key: str, after: int, limit: int) -> Read:
    """Return a session's events, and those that are not as they were written. Raises `Damaged`."""
    found = Read([], [])
    session = number_of(run, key)
    if session is None:
        return found
    left, at = limit or -1, after
    while left:
        wanted = _CHUNK if left < 0 else min(_CHUNK, left)
        seqs = _read_chunk(run, key, (session, at, wanted), found)
        if not seqs:
            break
        found.lost.extend(Lost(gap, None) for one, two in pairwise((at, *seqs)) for gap in range(one + 1, two))
        at = seqs[-1]
        left -= len(seqs) if left > 0 else 0
    return found


def _read_chunk(run: Run, key: str, where: tuple[int, int, int], found: Read) -> list[int]:
    """Add some events to what was found, and return the seqs that were there."""
    seqs, events = _at_once(run, key, where)
    if events is not None:
        found.events.extend(events)
        return seqs
    rows = run(_ONE_BY_ONE, where).fetchall()
    for row in rows:
        event = event_of(key, where[0], row)
        if event is None:
            found.lost.append(Lost(int(row[0]), row))
        else:
            found.events.append(event)
    return [int(row[0]) for row in rows]


def _at_once(run: Run, key: str, where: tuple[int, int, int]) -> tuple[list[int], list[Event] | None]:
    """Return some seqs and their events, or no events where one of them is not as it was written."""
    try:
        rows = _rows(run(_AT_ONCE, where).get)
    except (msgspec.DecodeError, UnicodeError):
        return [], None
    events = [event_of(key, where[0], row) for row in rows]
    sound = [event for event in events if event is not None]
    return [int(row[0]) for row in rows], sound if len(sound) == len(events) else None


def head(run: Run, key: str) -> Head | None:
    """Return where a session ends. Raises `Damaged`."""
    row = next(iter(run(f"SELECT {_SESSION} FROM sessions WHERE key = ?", (key,))), None)
    if row is None:
        return None
    info = session_of(run, row)
    if info.state == "damaged":
        raise Damaged(f"The session {key} is damaged.", "Run `operant doctor --repair`, which saves what can be read.")
    return Head(info=info, seq=info.events, snapshot=_snapshot(run, key, row[13], info.events))


def _snapshot(run: Run, key: str, session: int, end: int) -> Snapshot | None:
    """Return a session's snapshot when it is sound; without one the history is read."""
    found = next(iter(run("SELECT seq, version, data, crc FROM snapshots WHERE session = ?", (session,))), None)
    if found is None:
        return None
    seq, version, data, crc = found
    if seq > end or zlib.crc32(data) != crc:
        return None
    return Snapshot(session=key, seq=seq, version=version, data=data)


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
        "ORDER BY updated DESC, id DESC LIMIT ?",
        (int(archived), before, before, agent, agent, limit or -1),
    ).fetchall()
    return [session_of(run, row) for row in rows]


def unfinished(run: Run) -> list[str]:
    """List the sessions with something to do."""
    sql = "SELECT key FROM sessions WHERE open = 1 UNION SELECT session FROM inbox WHERE state = 'waiting'"
    return [row[0] for row in run(sql)]


def inbox(run: Run, where: str, arguments: tuple[Any, ...]) -> list[InboxItem]:
    """List inbox items, oldest first; one that cannot be read is left out."""
    rows = run(f"SELECT {_INBOX} FROM inbox WHERE {where} ORDER BY accepted, rowid", arguments)
    return [item for item in map(_inbox_item, rows) if item is not None]


def outbox(run: Run, where: str, arguments: tuple[Any, ...], limit: int = 0) -> list[OutboxItem]:
    """List outbox items, oldest first; one that cannot be read is left out."""
    sql = f"SELECT {_OUTBOX} FROM outbox WHERE {where} ORDER BY queued, rowid LIMIT ?"
    return [item for item in map(_outbox_item, run(sql, (*arguments, limit or -1))) if item is not None]


def usage(run: Run, since_day: str) -> list[UsageRow]:
    """Return usage from a day on."""
    columns = "day, session, agent, user, model, purse, input, cached, cache_write, output, reasoning, calls, usd"
    return [
        UsageRow(
            day=row[0], session=row[1], agent=row[2], user=row[3], model=row[4], purse=row[5], usage=_usage(row[6:])
        )
        for row in run(f"SELECT {columns} FROM usage WHERE day >= ?", (since_day,))
    ]


def _inbox_item(row: Any) -> InboxItem | None:
    try:
        return msgspec.structs.replace(_inbox(row[0]), state=row[1], seq=row[2], reason=row[3])
    except (msgspec.MsgspecError, TypeError):
        return None


def _outbox_item(row: Any) -> OutboxItem | None:
    try:
        item = _outbox(row[0])
    except (msgspec.MsgspecError, TypeError):
        return None
    return msgspec.structs.replace(
        item, state=row[1], attempts=row[2], next_at=row[3], expires=row[4], error=row[5], platform_id=row[6]
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


def value(run: Run, namespace: str, key: str, now: int) -> bytes | None:
    """Return an extension's value that has not expired."""
    sql = "SELECT value FROM kv WHERE namespace = ? AND key = ? AND (expires = 0 OR expires > ?)"
    return run(sql, (namespace, key, now)).get


def values(run: Run, namespace: str, page: Page, now: int) -> list[tuple[str, bytes]]:
    """List an extension's values by key."""
    prefix, after, limit = page
    beyond = after is not None and after >= prefix
    sql = (
        f"SELECT key, value FROM kv WHERE namespace = ? AND key {'>' if beyond else '>='} ? AND substr(key, 1, ?) = ? "
        "AND (expires = 0 OR expires > ?) ORDER BY key LIMIT ?"
    )
    found = run(sql, (namespace, after if beyond else prefix, len(prefix), prefix, now, limit or -1))
    return [(row[0], row[1]) for row in found]
