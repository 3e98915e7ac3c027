"""What comes back over the OpenAI responses protocol."""

from __future__ import annotations

from typing import Any

import msgspec

from operant.ext.providers.dialect import apart
from operant.kit.sse import ServerEvent
from operant.sdk import (
    ModelError,
    ModelErrorKind,
    Part,
    Reasoning,
    ReasoningDelta,
    Reply,
    StreamPart,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)

_ERRORS: dict[str, ModelErrorKind] = {
    "context_length_exceeded": "context_overflow",
    "rate_limit_exceeded": "rate_limited",
    "insufficient_quota": "rate_limited",
    "invalid_api_key": "auth",
    "server_is_overloaded": "overloaded",
    "overloaded_error": "overloaded",
    "slow_down": "overloaded",
    "invalid_prompt": "content_filter",
    "vector_store_timeout": "timeout",
}
_LENGTH = ("max_output_tokens", "max_tokens")
_SUMMARY = "response.reasoning_summary_text.delta"
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class Kept(msgspec.Struct):
    """What must go back of a thought."""

    id: str
    sealed: str


class Mark:
    """Whose reasoning it is: what is encrypted can be read only where it was."""

    def __init__(self, provider: str) -> None:
        self._prefix = f"responses:{provider}:"

    def opaque(self, item: Item) -> str:
        """Mark a thought; nothing where there is nothing to give back."""
        if not item.encrypted_content:
            return ""
        return self._prefix + msgspec.json.encode(Kept(item.id, item.encrypted_content)).decode()

    def item(self, thought: Reasoning) -> dict[str, Any] | None:
        """Return the item of a thought that was had here, and nothing for another."""
        if not thought.opaque.startswith(self._prefix):
            return None
        kept = msgspec.json.decode(thought.opaque.removeprefix(self._prefix), type=Kept)
        summary = [{"type": "summary_text", "text": thought.text}] if thought.text else []
        return {"type": "reasoning", "id": kept.id, "summary": summary, "encrypted_content": kept.sealed}


class Words(msgspec.Struct):
    """A part of a message or of a thought."""

    type: str = ""
    text: str = ""
    refusal: str = ""


class Item(msgspec.Struct):
    """A thought, a message or a call."""

    type: str = ""
    id: str = ""
    content: list[Words] | None = None
    summary: list[Words] = []
    encrypted_content: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class Details(msgspec.Struct):
    """Parts of a count."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class UsagePiece(msgspec.Struct):
    """The provider's count."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: Details | None = None
    output_tokens_details: Details | None = None


class Fault(msgspec.Struct):
    """Why it failed."""

    code: str | None = None
    message: str | None = None


class Reason(msgspec.Struct):
    """Why it is not complete."""

    reason: str = ""


class Response(msgspec.Struct):
    """A response at its end."""

    output: list[Item] = []
    usage: UsagePiece | None = None
    error: Fault | None = None
    incomplete_details: Reason | None = None


class Piece(msgspec.Struct):
    """One event; what we do not know is skipped."""

    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: str = ""
    item: Item | None = None
    response: Response | None = None
    code: str | None = None
    message: str | None = None
    error: Fault | None = None


_decode = msgspec.json.Decoder(Piece).decode


class ResponsesGathering:
    """Put a reply together out of its items."""

    def __init__(self, provider: str, model: str, mark: Mark) -> None:
        self._provider = provider
        self._model = model
        self._mark = mark
        self._items: dict[int, Item] = {}
        self._ended: Response | None = None
        self._summaries: set[tuple[int, int]] = set()
        self.done = False

    def add(self, event: ServerEvent) -> list[StreamPart]:
        """Take an event in and return what it shows."""
        if event.data == "[DONE]":
            return []
        try:
            piece = _decode(event.data)
        except msgspec.MsgspecError as error:
            raise ModelError("cut", f"{self._provider} sent an event that is no JSON of the protocol.") from error
        if piece.type == "error":
            raise self._fault(piece.error or Fault(piece.code, piece.message))
        if piece.type in _ENDS and piece.response is not None:
            self._ended, self.done = piece.response, True
        if piece.type == "response.output_item.done" and piece.item is not None:
            self._items[piece.output_index] = piece.item
        return self._shown(piece) if piece.delta else []

    def reply(self) -> Reply:
        """Return the whole reply. Raises `ModelError` when the stream ended before it was one."""
        ended = self._ended
        if ended is None:
            raise ModelError("cut", f"{self._provider} broke off before its answer was whole.")
        if ended.error is not None:
            raise self._fault(ended.error)
        stopped = ended.incomplete_details.reason if ended.incomplete_details else ""
        items = [item for _, item in sorted(self._items.items())] or ended.output
        cut = stopped in _LENGTH
        parts = [part for item in items for part in self._parts(item) if not (cut and isinstance(part, ToolCall))]
        refused = any(words.type == "refusal" for item in items for words in item.content or ())
        if stopped == "content_filter" and not any(isinstance(part, Text) for part in parts):
            raise ModelError("content_filter", f"{self._provider} withheld its answer (content filter).")
        finish = "length" if cut else stopped or ("refusal" if refused else "stop")
        if finish == "stop" and any(isinstance(part, ToolCall) for part in parts):
            finish = "tool_calls"
        usage = _usage(ended.usage or UsagePiece())
        return Reply(parts=apart(parts), model=self._model, provider=self._provider, finish=finish, usage=usage)

    def _shown(self, piece: Piece) -> list[StreamPart]:
        if piece.type in ("response.output_text.delta", "response.refusal.delta"):
            return [TextDelta(text=piece.delta)]
        if piece.type == "response.reasoning_text.delta":
            return [ReasoningDelta(text=piece.delta)]
        if piece.type != _SUMMARY:
            return []
        place = (piece.output_index, piece.summary_index)
        apart = "\n\n" if piece.summary_index and place not in self._summaries else ""
        self._summaries.add(place)
        return [ReasoningDelta(text=apart + piece.delta)]

    def _parts(self, item: Item) -> list[Part]:
        if item.type == "reasoning":
            words = "\n\n".join(one.text for one in item.summary) or "".join(one.text for one in item.content or ())
            opaque = self._mark.opaque(item)
            return [Reasoning(text=words, opaque=opaque)] if words or opaque else []
        if item.type == "message":
            said = "".join(one.text or one.refusal for one in item.content or ())
            return [Text(text=said)] if said else []
        if item.type == "function_call":
            return [ToolCall(id=item.call_id, name=item.name, arguments=item.arguments)]
        return []

    def _fault(self, fault: Fault) -> ModelError:
        kind = _ERRORS.get(fault.code or "", "server")
        return ModelError(kind, f"{self._provider} failed in the middle: {fault.message or fault.code or 'no reason'}")


def _usage(piece: UsagePiece) -> Usage:
    given, made = piece.input_tokens_details or Details(), piece.output_tokens_details or Details()
    return Usage(
        input=piece.input_tokens or 0,
        cached=given.cached_tokens or 0,
        cache_write=given.cache_write_tokens or 0,
        output=piece.output_tokens or 0,
        reasoning=made.reasoning_tokens or 0,
        calls=1,
    )
