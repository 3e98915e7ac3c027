"""The Anthropic messages protocol as it comes back: events that are read once; what we do not know is skipped."""

from __future__ import annotations

import msgspec


class Kind(msgspec.Struct):
    """Which event it is; all else of one that we do not know is skipped."""

    type: str = ""


class OutputDetails(msgspec.Struct):
    """How many of the answer's tokens were thinking."""

    thinking_tokens: int | None = None


class UsagePiece(msgspec.Struct):
    """What was counted so far; `input_tokens` has neither what was cached nor what was written to the cache."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class Begun(msgspec.Struct):
    """The message that begins."""

    usage: UsagePiece | None = None


class Started(msgspec.Struct):
    """`message_start`."""

    message: Begun | None = None


class BlockPiece(msgspec.Struct):
    """A block as it begins; a block of an unknown type has none of this."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"")


class BlockStarted(msgspec.Struct):
    """`content_block_start`."""

    content_block: BlockPiece
    index: int = 0


class DeltaPiece(msgspec.Struct):
    """What is added to a block."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None


class BlockGrown(msgspec.Struct):
    """`content_block_delta`."""

    delta: DeltaPiece
    index: int = 0


class StopDetails(msgspec.Struct):
    """Why it was refused."""

    category: str | None = None
    explanation: str | None = None


class Stop(msgspec.Struct):
    """Why the message ended."""

    stop_reason: str | None = None
    stop_details: StopDetails | None = None


class Stopped(msgspec.Struct):
    """`message_delta`."""

    delta: Stop | None = None
    usage: UsagePiece | None = None


class Fault(msgspec.Struct):
    """What went wrong."""

    type: str | None = None
    message: str | None = None


class Failed(msgspec.Struct):
    """`error`."""

    error: Fault | None = None


Event = Started | BlockStarted | BlockGrown | Stopped | Failed

_kind = msgspec.json.Decoder(Kind).decode
_EVENTS: dict[str, msgspec.json.Decoder[Event]] = {
    "message_start": msgspec.json.Decoder(Started),
    "content_block_start": msgspec.json.Decoder(BlockStarted),
    "content_block_delta": msgspec.json.Decoder(BlockGrown),
    "message_delta": msgspec.json.Decoder(Stopped),
    "error": msgspec.json.Decoder(Failed),
}


def read_event(data: str) -> tuple[str, Event | None]:
    """Return an event's type, and the event where it is one that matters. Raises `msgspec.MsgspecError`."""
    kind = _kind(data).type
    decoder = _EVENTS.get(kind)
    return kind, decoder.decode(data) if decoder else None
