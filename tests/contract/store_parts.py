"""What tests of stores write: events, messages, and the operations that carry them."""

from __future__ import annotations

from operant.sdk import (
    Accept,
    Address,
    Append,
    Body,
    Event,
    InboxItem,
    MessageQueued,
    Note,
    SessionOpened,
    Text,
    Unknown,
    Usage,
)

NOW = 1_795_206_840_000_000
"""Friday, 20 November 2026, 20:34 UTC."""
HERE = Address(channel="memory", chat="1", account="bot")


def event(session: str, seq: int, body: Body | Unknown | None = None, at: int = NOW, kind: str = "") -> Event:
    """Make an event; a note when nothing is said of its body."""
    body = Note(kind="test", text=f"note {seq} of {session}") if body is None else body
    kind = kind or (body.type if isinstance(body, Body) else "")
    return Event(
        session=session, seq=seq, id=f"{session}-{seq}", type=kind, at=at, body=body, turn="t1", actor="agent:main"
    )


def append(session: str, seq: int, *bodies: Body | None, at: int = NOW, agent: str = "main") -> Append:
    """Append events in a row, one note when none are given."""
    events = tuple(event(session, at_seq, body, at) for at_seq, body in enumerate(bodies or (None,), seq))
    return Append(events=events, agent=agent, user="ann")


def opened(session: str, at: int = NOW, agent: str = "main") -> Append:
    """Append a session's first event."""
    return append(session, 1, SessionOpened(agent=agent, channel="memory", chat="1", title=session), at=at)


def message(id: str, session: str = "s", external_id: str = "", address: Address = HERE) -> InboxItem:
    """Make a message on its way in."""
    return InboxItem(
        id=id,
        session=session,
        parts=(Text(text=f"message {id}"),),
        address=address,
        accepted=NOW,
        external_id=external_id,
    )


def accept(id: str, session: str = "s", external_id: str = "") -> Accept:
    """Take a message in."""
    return Accept(item=message(id, session, external_id))


def queued(id: str, expires: int = 0) -> MessageQueued:
    """Make what puts a message into the outbox."""
    return MessageQueued(outbox_id=id, parts=(Text(text=f"answer {id}"),), address=HERE, reply_to="m", expires=expires)


SPENT = Usage(input=100, cached=20, output=10, calls=1, usd=0.25)
