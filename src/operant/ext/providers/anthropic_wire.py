"""What comes back over the Anthropic messages protocol."""

from __future__ import annotations

from typing import Any

import msgspec

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

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "stop",
}
_ERRORS: dict[str, ModelErrorKind] = {
    "overloaded_error": "overloaded",
    "rate_limit_error": "rate_limited",
    "authentication_error": "auth",
    "permission_error": "auth",
    "not_found_error": "not_found",
    "invalid_request_error": "bad_request",
    "request_too_large": "context_overflow",
    "timeout_error": "timeout",
}


class Mark:
    """Whose reasoning it is: a signature is good only where it was given."""

    def __init__(self, provider: str) -> None:
        self._prefix = f"anthropic:{provider}:"

    def signed(self, signature: str) -> str:
        """Mark the signature of a thought."""
        return f"{self._prefix}s:{signature}" if signature else ""

    def hidden(self, data: str) -> str:
        """Mark a thought that is only there encrypted."""
        return f"{self._prefix}r:{data}"

    def block(self, thought: Reasoning) -> dict[str, Any] | None:
        """Return the block of a thought that was had here, and nothing for another."""
        if not thought.opaque.startswith(self._prefix):
            return None
        kind, _, data = thought.opaque.removeprefix(self._prefix).partition(":")
        if kind == "r":
            return {"type": "redacted_thinking", "data": data}
        return {"type": "thinking", "thinking": thought.text, "signature": data}


class Block(msgspec.Struct):
    """The beginning of a block."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""


class Delta(msgspec.Struct):
    """A piece of a block, or of the message."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class UsagePiece(msgspec.Struct):
    """The provider's count; cached and written tokens are not part of `input_tokens`."""

    input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens: int | None = None


class Start(msgspec.Struct):
    """The beginning of a message."""

    usage: UsagePiece | None = None


class Fault(msgspec.Struct):
    """An error in a stream."""

    type: str = ""
    message: str = ""


class Piece(msgspec.Struct):
    """One event; what we do not know is skipped."""

    type: str = ""
    index: int = 0
    message: Start | None = None
    content_block: Block | None = None
    delta: Delta | None = None
    usage: UsagePiece | None = None
    error: Fault | None = None


_decode = msgspec.json.Decoder(Piece).decode


class _Open:
    """A block that is being put together."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.text: list[str] = [block.text or block.thinking]
        self.arguments: list[str] = []
        self.signature = block.signature
        self.closed = False

    def add(self, delta: Delta) -> None:
        self.text.append(delta.text or delta.thinking)
        self.arguments.append(delta.partial_json)
        self.signature += delta.signature


class AnthropicGathering:
    """Put a reply together out of its blocks."""

    def __init__(self, provider: str, model: str, mark: Mark) -> None:
        self._provider = provider
        self._model = model
        self._mark = mark
        self._blocks: dict[int, _Open] = {}
        self._finish = ""
        self._usage = UsagePiece()
        self.done = False

    def add(self, event: ServerEvent) -> list[StreamPart]:
        """Take an event in and return what it shows."""
        try:
            piece = _decode(event.data)
        except msgspec.MsgspecError as error:
            raise ModelError("cut", f"{self._provider} sent an event that is no JSON of the protocol.") from error
        if piece.error is not None:
            raise self._fault(piece.error)
        if piece.message is not None and piece.message.usage is not None:
            self._count(piece.message.usage)
        if piece.usage is not None:
            self._count(piece.usage)
        if piece.type == "content_block_start" and piece.content_block is not None:
            opened = self._blocks[piece.index] = _Open(piece.content_block)
            return _shown(piece.content_block.type, opened.text[0])
        if piece.type == "content_block_stop" and piece.index in self._blocks:
            self._blocks[piece.index].closed = True
        if piece.delta is not None:
            return self._delta(piece)
        self.done = self.done or piece.type == "message_stop"
        return []

    def reply(self) -> Reply:
        """Return the whole reply. Raises `ModelError` when the stream ended before it was one."""
        if not self._finish:
            raise ModelError("cut", f"{self._provider} broke off before its answer was whole.")
        parts = [part for _, block in sorted(self._blocks.items()) for part in self._parts(block)]
        finish = _FINISH.get(self._finish, self._finish)
        if finish == "refusal" and not any(isinstance(part, Text) for part in parts):
            raise ModelError("content_filter", f"{self._provider} refused to answer.")
        return Reply(
            parts=_apart(parts), model=self._model, provider=self._provider, finish=finish, usage=self._counted()
        )

    def _delta(self, piece: Piece) -> list[StreamPart]:
        delta = piece.delta
        if delta is None:
            return []
        if delta.stop_reason:
            self._finish = delta.stop_reason
        opened = self._blocks.get(piece.index) if piece.type == "content_block_delta" else None
        if opened is None:
            return []
        opened.add(delta)
        return _shown(opened.block.type, delta.text or delta.thinking)

    def _parts(self, opened: _Open) -> list[Part]:
        block, words = opened.block, "".join(opened.text)
        if block.type == "text":
            return [Text(text=words)] if words else []
        if block.type == "thinking":
            return [Reasoning(text=words, opaque=self._mark.signed(opened.signature))]
        if block.type == "redacted_thinking":
            return [Reasoning(text="", opaque=self._mark.hidden(block.data))]
        # At the output limit the last call is half a call, and half a call is none.
        if block.type == "tool_use" and self._finish != "max_tokens":
            return [ToolCall(id=block.id, name=block.name, arguments="".join(opened.arguments) or "{}")]
        return []

    def _count(self, usage: UsagePiece) -> None:
        self._usage = UsagePiece(
            *(
                new if (new := getattr(usage, name)) is not None else getattr(self._usage, name)
                for name in UsagePiece.__struct_fields__
            )
        )

    def _counted(self) -> Usage:
        cached, written = self._usage.cache_read_input_tokens or 0, self._usage.cache_creation_input_tokens or 0
        return Usage(
            input=(self._usage.input_tokens or 0) + cached + written,
            cached=cached,
            cache_write=written,
            output=self._usage.output_tokens or 0,
            calls=1,
        )

    def _fault(self, fault: Fault) -> ModelError:
        kind = _ERRORS.get(fault.type, "server")
        return ModelError(kind, f"{self._provider} failed in the middle: {fault.message or fault.type}")


def _shown(kind: str, words: str) -> list[StreamPart]:
    if not words:
        return []
    if kind == "text":
        return [TextDelta(text=words)]
    return [ReasoningDelta(text=words)] if kind == "thinking" else []


def _apart(parts: list[Part]) -> tuple[Part, ...]:
    """Give every call an id of its own."""
    taken: set[str] = set()
    apart: list[Part] = []
    for at, part in enumerate(parts):
        if isinstance(part, ToolCall):
            id = part.id or f"call_{at}"
            while id in taken:
                id += "_"
            taken.add(id)
            part = msgspec.structs.replace(part, id=id)
        apart.append(part)
    return tuple(apart)
