"""Between rows and records: how an event is written, and how it is read with its checksum."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from operant.sdk import (
    BODIES,
    Body,
    ContextCompacted,
    Event,
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

_reference = re.compile(rb'"type":"blob","digest":"([0-9a-f]{64})"')
"""A `BlobRef` as it is encoded; quotes inside texts are escaped, so that words cannot look like one."""

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
        body = body.encode() if isinstance(body, str) else body
        decode = _decoders.get(kind)
        known = decode(body) if decode else Unknown(_decode_any(body))
        event = Event(session=key, seq=seq, id=id, type=kind, at=at, body=known, turn=turn, actor=actor)
        return event if checksum(session, event, body) == crc else None
    except (msgspec.MsgspecError, AttributeError, TypeError, UnicodeError):
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


def blobs_of(stored: bytes) -> set[str]:
    """Return the digests that something stored as JSON refers to, also from within a type that we do not know."""
    if b'"blob"' not in stored:
        return set()
    return {digest.decode() for digest in _reference.findall(stored)}
