"""Between rows and records: how an event is written, and how it is read with its checksum."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from operant.sdk import (
    BODIES,
    BlobRef,
    Body,
    ContextCompacted,
    ContextOpened,
    Event,
    MessageQueued,
    MessageReceived,
    ModelReplied,
    Note,
    Text,
    ToolCall,
    ToolEnded,
    Unknown,
)

encode = msgspec.json.Encoder().encode
_decoders = {name: msgspec.json.Decoder(body).decode for name, body in BODIES.items()}
_decode_any = msgspec.json.Decoder().decode

EVENT_COLUMNS = "seq, id, type, at, turn, actor, body, crc"
Row = Sequence[Any]


def body_bytes(body: Body | Unknown) -> bytes:
    """Return a body as it is stored; one that we do not know is stored as it came."""
    return encode(body.data if isinstance(body, Unknown) else body)


def checksum(session: int, event: Event, body: bytes) -> int:
    """Return the CRC of everything in a row."""
    head = f"{session}\0{event.seq}\0{event.id}\0{event.type}\0{event.at}\0{event.turn}\0{event.actor}\0"
    return zlib.crc32(body, zlib.crc32(head.encode()))


def event_of(key: str, session: int, row: Row) -> Event | None:
    """Read a row of `EVENT_COLUMNS`; None when it is not as it was written."""
    seq, id, kind, at, turn, actor, body, crc = row
    try:
        decode = _decoders.get(kind)
        known = decode(body) if decode else Unknown(_decode_any(body))
        event = Event(session=key, seq=seq, id=id, type=kind, at=at, body=known, turn=turn, actor=actor)
        return event if checksum(session, event, body) == crc else None
    except (msgspec.MsgspecError, TypeError, UnicodeError):
        return None


def words_of(event: Event) -> str:
    """Return the words by which an event is found; empty for one that nobody looks for."""
    match event.body:
        case MessageReceived() | ModelReplied() | ToolEnded() as body:
            words = [part.text for part in body.parts if isinstance(part, Text)]
            words += [f"{part.name} {part.arguments}" for part in body.parts if isinstance(part, ToolCall)]
            return "\n".join(words)
        case Note() as body:
            return "" if body.kind == "hook" else body.text
        case ContextCompacted() as body:
            return body.summary
        case _:
            return ""


def blobs_of(body: Body | Unknown) -> set[str]:
    """Return the digests that a body refers to."""
    match body:
        case ContextOpened():
            return {body.system.digest, body.tools.digest}
        case MessageReceived() | ModelReplied() | MessageQueued():
            return {part.digest for part in body.parts if isinstance(part, BlobRef)}
        case ToolEnded():
            return {part.digest for part in (*body.parts, *body.artifacts) if isinstance(part, BlobRef)}
        case _:
            return set()
