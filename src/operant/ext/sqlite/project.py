"""The lists that are projected from the log, written in the transaction that appends."""

from __future__ import annotations

from datetime import UTC, datetime

from operant.ext.sqlite.rows import encode
from operant.kit.sqlite import Execute
from operant.sdk import (
    Append,
    Event,
    MessageDelivered,
    MessageFailed,
    MessageQueued,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    OutboxItem,
    SessionChanged,
    SessionOpened,
    TurnEnded,
    TurnStarted,
    Usage,
)

_DAY = 86_400_000_000


class Projector:
    """Keep the lists in step with what is appended."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._day = (-1, "")

    def apply(self, append: Append, session: int, event: Event) -> None:
        """Project one event."""
        body = event.body
        if isinstance(body, TurnStarted | TurnEnded):
            is_open = isinstance(body, TurnStarted) and not append.copied
            sql = "UPDATE sessions SET updated = ?, open = ? WHERE id = ?"
            self._execute(sql, (event.at, int(is_open), session))
        elif isinstance(body, SessionOpened):
            self._opened(session, event, body)
        elif isinstance(body, SessionChanged):
            self._changed(session, event, body)
        elif not append.copied:
            self._counted(append, event)

    def _counted(self, append: Append, event: Event) -> None:
        """Project what a copy of the event must not do again."""
        match event.body:
            case MessageReceived(inbox_id=inbox_id) if inbox_id:
                sql = "UPDATE inbox SET state = 'received', seq = ? WHERE id = ?"
                self._execute(sql, (event.seq, inbox_id))
            case MessageQueued() as body:
                self._queued(event, body)
            case MessageDelivered() as body:
                sql = "UPDATE outbox SET state = 'delivered', platform_id = ?, attempts = ?, error = '' WHERE id = ?"
                self._execute(sql, (body.platform_id, body.attempts, body.outbox_id))
            case MessageFailed() as body:
                sql = "UPDATE outbox SET state = 'dead', error = ?, attempts = ? WHERE id = ?"
                self._execute(sql, (body.error, body.attempts, body.outbox_id))
            case ModelReplied() | ModelFailed() as body:
                self._used(append, event, body.model, body.usage)
            case _:
                return

    def _opened(self, session: int, event: Event, body: SessionOpened) -> None:
        self._execute(
            "UPDATE sessions SET agent = ?, channel = ?, chat = ?, thread = ?, title = ?, parent = ?, updated = ? "
            "WHERE id = ?",
            (body.agent, body.channel, body.chat, body.thread, body.title, body.parent, event.at, session),
        )

    def _changed(self, session: int, event: Event, body: SessionChanged) -> None:
        self._execute(
            "UPDATE sessions SET title = coalesce(?, title), model = coalesce(?, model), "
            "archived = coalesce(?, archived), updated = ? WHERE id = ?",
            (body.title, body.model, body.archived, event.at, session),
        )

    def _queued(self, event: Event, body: MessageQueued) -> None:
        item = OutboxItem(
            id=body.outbox_id,
            session=event.session,
            parts=body.parts,
            address=body.address,
            queued=event.at,
            reply_to=body.reply_to,
            expires=body.expires,
        )
        self._execute(
            "INSERT INTO outbox (id, session, state, queued, expires, item) VALUES (?, ?, 'waiting', ?, ?, ?)",
            (item.id, item.session, item.queued, item.expires, encode(item)),
        )

    def _used(self, append: Append, event: Event, model: str, usage: Usage) -> None:
        if usage == Usage():
            return
        day = self._day_of(event.at)
        self._execute(
            "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "input = input + excluded.input, cached = cached + excluded.cached, "
            "cache_write = cache_write + excluded.cache_write, output = output + excluded.output, "
            "reasoning = reasoning + excluded.reasoning, calls = calls + excluded.calls, usd = usd + excluded.usd",
            (
                *(day, event.session, append.agent, append.user, model, append.purse),
                *(usage.input, usage.cached, usage.cache_write, usage.output),
                *(usage.reasoning, usage.calls, usage.usd),
            ),
        )

    def _day_of(self, at: int) -> str:
        """Return the UTC day of a time in microseconds, as `YYYY-MM-DD`."""
        number = at // _DAY
        if number != self._day[0]:
            self._day = (number, datetime.fromtimestamp(at / 1_000_000, UTC).strftime("%Y-%m-%d"))
        return self._day[1]
