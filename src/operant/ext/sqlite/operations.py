"""Carrying out operations on the writer's connection, inside a transaction that the writer opened."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from operant.ext.sqlite.project import Projector
from operant.ext.sqlite.rows import blobs_of, body_bytes, checksum, encode
from operant.kit.sqlite import Database
from operant.sdk import (
    Accept,
    Append,
    Conflict,
    Decline,
    Erase,
    Event,
    Hand,
    Invalid,
    Operation,
    Postpone,
    PutValue,
    Snapshot,
)

_HEADS = 20_000
"""How many sessions' ends are remembered, so that an append need not look its own up."""
_INSERT = (
    "INSERT INTO events (n, session, seq, id, type, at, turn, actor, body, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_UNFIT = (UnicodeError, OverflowError, TypeError, ValueError, msgspec.MsgspecError)
"""What encoding and binding raise for a value that has no place in JSON or SQLite, such as half a surrogate pair."""


class Operations:
    """Know each operation's SQL."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection
        self._run = self.run = connection.execute
        self._projector = Projector(connection.execute)
        self._heads: dict[str, tuple[int, int]] = {}
        self._referred: set[tuple[str, str]] = set()
        self._rows: list[tuple[Any, ...]] = []
        self._last: int | None = None
        self.referred: set[str] = set()
        """Digests that the transaction refers to."""
        self.erased: set[str] = set()
        """Digests that sessions erased in the transaction referred to."""
        self.erases = False
        self._ways: dict[type[Any], Callable[[Any], None]] = {
            Append: self._append,
            Accept: self._accept,
            Decline: self._decline,
            Hand: self._hand,
            Postpone: self._postpone,
            Snapshot: self._snapshot,
            Erase: self._erase,
            PutValue: self._put,
        }

    def begin(self) -> None:
        """Start with what one transaction does."""
        self.referred.clear()
        self.erased.clear()
        self.erases = False

    def forget(self) -> None:
        """Forget what was remembered of a transaction that was rolled back."""
        self._heads.clear()
        self._referred.clear()
        self._rows.clear()
        self._last = None

    def carry_out(self, operation: Operation) -> None:
        """Carry out one operation. Raises `Conflict`, `Invalid` for what cannot be stored, or what SQLite raises."""
        try:
            self._ways[type(operation)](operation)
        except apsw.ConstraintError as error:
            raise Conflict(f"Somebody else has written this already: {error}.") from error
        except _UNFIT as error:
            raise Invalid(f"This cannot be stored: {error}.") from error

    def finish(self) -> None:
        """Insert the events that were appended; they wait, so that a group of appends is one statement."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        try:
            self._connection.executemany(_INSERT, rows)
        except apsw.ConstraintError as error:
            raise Conflict(f"Somebody else has written to this session: {error}.") from error
        except _UNFIT as error:
            raise Invalid(f"This cannot be stored: {error}.") from error

    def count_commit(self) -> int:
        """Count the transaction and return its number."""
        sql = "UPDATE meta SET value = value + 1 WHERE key = 'commits' RETURNING value"
        return int(self._run(sql).get)

    def read_meta(self, key: str) -> Any:
        """Return one of the store's own values."""
        return self._run("SELECT value FROM meta WHERE key = ?", (key,)).get

    def _append(self, append: Append) -> None:
        for event in append.events:
            session, seq = self._heads.get(event.session) or self._find(append, event)
            if event.seq != seq + 1:
                raise Conflict(f"{event.session} ends at {seq}, so {event.seq} cannot be next.")
            body = body_bytes(event.body)
            crc = checksum(session, event, body)
            place = (self._number(), session, event.seq)
            self._rows.append((*place, event.id, event.type, event.at, event.turn, event.actor, body, crc))
            self._heads[event.session] = (session, event.seq)
            self._refer(event.session, body)
            self._projector.apply(append, session, event)

    def _number(self) -> int:
        """Return the next event's number; none is given twice, or the search index would miss an event."""
        if self._last is None:
            sql = "SELECT max((SELECT coalesce(max(n), 0) FROM events), (SELECT value FROM meta WHERE key = 'floor'))"
            self._last = int(self._run(sql).get)
        self._last += 1
        return self._last

    def _find(self, append: Append, event: Event) -> tuple[int, int]:
        """Return a session's number and end, making its row when it is new."""
        self.finish()
        if len(self._heads) > _HEADS:
            self._heads.clear()
        found = self._run("SELECT id FROM sessions WHERE key = ?", (event.session,)).get
        if found is None and event.seq != 1:
            raise Conflict(f"There is no session {event.session}, so {event.seq} cannot be next.")
        if found is None:
            self._run(
                "INSERT INTO sessions (key, agent, created, updated) VALUES (?, ?, ?, ?)",
                (event.session, append.agent, event.at, event.at),
            )
            return int(self._run("SELECT last_insert_rowid()").get), 0
        seq = self._run("SELECT coalesce(max(seq), 0) FROM events WHERE session = ?", (found,)).get
        return int(found), int(seq)

    def _refer(self, session: str, stored: bytes) -> None:
        for digest in blobs_of(stored):
            self.referred.add(digest)
            if (digest, session) not in self._referred:
                if len(self._referred) > _HEADS:
                    self._referred.clear()
                self._referred.add((digest, session))
                self._run("INSERT OR IGNORE INTO blob_refs VALUES (?, ?)", (digest, session))

    def _accept(self, operation: Accept) -> None:
        item, where = operation.item, operation.item.address
        stored = encode(item)
        try:
            self._run(
                "INSERT INTO inbox (id, session, channel, account, external_id, accepted, state, item) "
                "VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?)",
                (*(item.id, item.session, where.channel, where.account, item.external_id), item.accepted, stored),
            )
        except apsw.ConstraintError as error:
            raise Conflict(f"The message {item.external_id or item.id} was accepted before.") from error
        self._refer(item.session, stored)

    def _decline(self, operation: Decline) -> None:
        sql = "UPDATE inbox SET state = 'rejected', reason = ? WHERE id = ?"
        self._run(sql, (operation.reason, operation.inbox_id))

    def _hand(self, operation: Hand) -> None:
        sql = "UPDATE outbox SET state = 'handed', attempts = ? WHERE id = ?"
        self._run(sql, (operation.attempts, operation.outbox_id))

    def _postpone(self, operation: Postpone) -> None:
        self._run(
            "UPDATE outbox SET state = 'waiting', next_at = ?, attempts = ?, error = ?, "
            "expires = coalesce(?, expires) WHERE id = ?",
            (operation.next_at, operation.attempts, operation.error, operation.expires, operation.outbox_id),
        )

    def _snapshot(self, operation: Snapshot) -> None:
        self._run(
            "INSERT OR REPLACE INTO snapshots SELECT id, ?, ?, ?, ? FROM sessions WHERE key = ?",
            (operation.seq, operation.version, zlib.crc32(operation.data), operation.data, operation.session),
        )

    def _put(self, operation: PutValue) -> None:
        if operation.value is None:
            self._run("DELETE FROM kv WHERE namespace = ? AND key = ?", (operation.namespace, operation.key))
            return
        self._run(
            "INSERT OR REPLACE INTO kv VALUES (?, ?, ?, ?)",
            (operation.namespace, operation.key, operation.value, operation.expires),
        )

    def _erase(self, operation: Erase) -> None:
        """Remove a session; what it cost stays, without its name."""
        self.finish()
        key = operation.session
        session = self._run("SELECT id FROM sessions WHERE key = ?", (key,)).get
        refs = self._run("SELECT digest FROM blob_refs WHERE session = ?", (key,))
        self.erased.update(row[0] for row in refs)
        self.erases = True
        for table in ("inbox", "outbox", "blob_refs", "quarantine", "damages"):
            self._run(f"DELETE FROM {table} WHERE session = ?", (key,))
        self._run(
            "INSERT INTO usage SELECT day, '', agent, user, model, purse, input, cached, cache_write, output, "
            "reasoning, calls, usd FROM usage WHERE session = ? ON CONFLICT DO UPDATE SET "
            "input = input + excluded.input, cached = cached + excluded.cached, "
            "cache_write = cache_write + excluded.cache_write, output = output + excluded.output, "
            "reasoning = reasoning + excluded.reasoning, calls = calls + excluded.calls, usd = usd + excluded.usd",
            (key,),
        )
        self._run("DELETE FROM usage WHERE session = ?", (key,))
        if session is not None:
            self._erase_history(int(session))
        self._heads.pop(key, None)
        self._referred.clear()

    def _erase_history(self, session: int) -> None:
        self._run("UPDATE meta SET value = ? WHERE key = 'floor'", (self._number() - 1,))
        self._run("INSERT INTO erasing VALUES (?)", (session,))
        self._run("DELETE FROM events WHERE session = ?", (session,))
        self._run("DELETE FROM erasing")
        self._run("DELETE FROM snapshots WHERE session = ?", (session,))
        self._run("DELETE FROM sessions WHERE id = ?", (session,))
        self._run("INSERT INTO erased VALUES (?)", (session,))
