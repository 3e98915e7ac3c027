"""The OpenAI responses protocol as it comes back: events that are read once; what we do not know is skipped."""

from __future__ import annotations

import msgspec


class Words(msgspec.Struct):
    """A part of a message or of a thought."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None


class Item(msgspec.Struct):
    """A thought, a message, a call, or what we do not know."""

    type: str = ""
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    content: list[Words] | None = None
    summary: list[Words] | None = None
    encrypted_content: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class InputDetails(msgspec.Struct):
    """How many of the prompt's tokens were cached, and written to the cache."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OutputDetails(msgspec.Struct):
    """How many of the answer's tokens were thinking."""

    reasoning_tokens: int | None = None


class UsagePiece(msgspec.Struct):
    """The provider's count; `input_tokens` includes what was cached."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class Fault(msgspec.Struct):
    """What went wrong."""

    code: str | None = None
    type: str | None = None
    message: str | None = None


class Reason(msgspec.Struct):
    """Why a response is not complete."""

    reason: str | None = None


class Whole(msgspec.Struct):
    """A response as it is at its end; its items are decoded one by one, because some are none of ours."""

    status: str | None = None
    output: list[msgspec.Raw] | None = None
    usage: UsagePiece | None = None
    error: Fault | None = None
    incomplete_details: Reason | None = None


class Kind(msgspec.Struct):
    """Which event it is, and of which number."""

    type: str = ""
    sequence_number: int | None = None


class Grown(msgspec.Struct):
    """Words that are added to an item."""

    delta: str = ""
    output_index: int = 0
    summary_index: int = 0


class Done(msgspec.Struct):
    """`response.output_item.done`."""

    item: msgspec.Raw
    output_index: int = 0


class Ended(msgspec.Struct):
    """`response.completed`, `response.incomplete`, `response.failed`."""

    response: Whole


class Failed(msgspec.Struct):
    """`error`, whose fields some servers wrap."""

    error: Fault | None = None
    code: str | None = None
    message: str | None = None


Event = Grown | Done | Ended | Failed
WORDS = frozenset({"response.output_text.delta", "response.refusal.delta"})
SUMMARY = "response.reasoning_summary_text.delta"
THOUGHTS = frozenset({SUMMARY, "response.reasoning_text.delta"})
_KNOWN = frozenset({"reasoning", "message", "function_call"})

_kind = msgspec.json.Decoder(Kind).decode
_item = msgspec.json.Decoder(Item).decode
_grown: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Grown)
_ended: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Ended)
_EVENTS: dict[str, msgspec.json.Decoder[Event]] = {
    **dict.fromkeys((*WORDS, *THOUGHTS), _grown),
    "response.output_item.done": msgspec.json.Decoder(Done),
    **dict.fromkeys(("response.completed", "response.incomplete", "response.failed"), _ended),
    "error": msgspec.json.Decoder(Failed),
}


def read_event(data: str) -> tuple[Kind, Event | None]:
    """Return an event's kind, and the event where it is one that matters. Raises `msgspec.MsgspecError`."""
    kind = _kind(data)
    decoder = _EVENTS.get(kind.type)
    return kind, decoder.decode(data) if decoder else None


def read_item(raw: msgspec.Raw) -> Item:
    """Return an item; one of an unknown type is empty. Raises `msgspec.MsgspecError`."""
    kind = _kind(raw).type
    return _item(raw) if kind in _KNOWN else Item(type=kind)
