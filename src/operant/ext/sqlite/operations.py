"""Carrying out operations on the writer's connection, inside a transaction that the writer opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw

from operant.ext.sqlite.project import Projector
from operant.ext.sqlite.rows import blobs_of, body_bytes, checksum, encode
from operant.kit.sqlite import Database
from operant.sdk import Accept, Append, Conflict, Decline, Erase, Event, Hand, Operation, Postpone, PutValue, Snapshot

_HEADS = 20_000
"""How many sessions' ends are remembered, so that an append need not look its own up."""


class Operations:
    """Know each operation's SQL."""

    def __init__(self, connection: Database) -> None:
        self._run = connection.execute
        self._projector = Projector(connection.execute)
        self._heads: dict[str, tuple[int, int]] = {}
        self._referred: set[tuple[str, int]] = set()
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

    def forget(self) -> None:
        """Forget what was remembered of a transaction that was rolled back."""
        self._heads.clear()
        self._referred.clear()

    def carry_out(self, operation: Operation) -> None:
        """Carry out one operation. Raises `Conflict`, or what SQLite raises."""
        self._ways[type(operation)](operation)

    def index(self, rows: Sequence[tuple[int, str]]) -> None:
        """Add words to the search index, and note how far it goes."""
        for number, words in rows:
            if words:
                self._run("INSERT OR REPLACE INTO words (rowid, text) VALUES (?, ?)", (number, words))
        self._run("INSERT OR REPLACE INTO meta VALUES ('indexed', ?)", (rows[-1][0],))

    def _append(self, append: Append) -> None:
        for event in append.events:
            session, seq = self._heads.get(event.session) or self._find(append, event)
            if event.seq != seq + 1:
                raise Conflict(f"{event.session} ends at {seq}, so {event.seq} cannot be next.")
            body = body_bytes(event.body)
            self._run(
                "INSERT INTO events (session, seq, id, type, at, turn, actor, body, crc) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(session, event.seq, event.id, event.type, event.at, event.turn, event.actor),
                    *(body, checksum(session, event, body)),
                ),
            )
            self._heads[event.session] = (session, event.seq)
            self._refer(session, event)
            self._projector.apply(append, session, event)

    def _find(self, append: Append, event: Event) -> tuple[int, int]:
        """Return a session's number and end, making its row when it is new."""
        if len(self._heads) > _HEADS:
            self._heads.clear()
        found = self._run("SELECT id FROM sessions WHERE key = ?", (event.session,)).get
        if found is None:
            self._run(
                "INSERT INTO sessions (key, agent, created, updated) VALUES (?, ?, ?, ?)",
                (event.session, append.agent, event.at, event.at),
            )
            found = self._run("SELECT last_insert_rowid()").get
        seq = self._run("SELECT coalesce(max(seq), 0) FROM events WHERE session = ?", (found,)).get
        return int(found), int(seq)

    def _refer(self, session: int, event: Event) -> None:
        for digest in blobs_of(event.body):
            if (digest, session) not in self._referred:
                if len(self._referred) > _HEADS:
                    self._referred.clear()
                self._referred.add((digest, session))
                self._run("INSERT OR IGNORE INTO blob_refs VALUES (?, ?)", (digest, session))

    def _accept(self, operation: Accept) -> None:
        item, where = operation.item, operation.item.address
        try:
            self._run(
                "INSERT INTO inbox (id, session, channel, account, external_id, accepted, state, item) "
                "VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?)",
                (
                    *(item.id, item.session, where.channel, where.account, item.external_id),
                    *(item.accepted, encode(item)),
                ),
            )
        except apsw.ConstraintError as error:
            raise Conflict(f"The message {item.external_id or item.id} was accepted before.") from error

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
            "INSERT OR REPLACE INTO snapshots SELECT id, ?, ?, ? FROM sessions WHERE key = ?",
            (operation.seq, operation.version, operation.data, operation.session),
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
        key = operation.session
        session = self._run("SELECT id FROM sessions WHERE key = ?", (key,)).get
        self._run("DELETE FROM inbox WHERE session = ?", (key,))
        self._run("DELETE FROM outbox WHERE session = ?", (key,))
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
            self._run("INSERT INTO erasing VALUES (?)", (session,))
            self._run("DELETE FROM words WHERE rowid IN (SELECT n FROM events WHERE session = ?)", (session,))
            self._run("DELETE FROM events WHERE session = ?", (session,))
            self._run("DELETE FROM snapshots WHERE session = ?", (session,))
            self._run("DELETE FROM blob_refs WHERE session = ?", (session,))
            self._run("DELETE FROM sessions WHERE id = ?", (session,))
            self._run("DELETE FROM erasing", ())
        self._heads.pop(key, None)
        self._referred.clear()
