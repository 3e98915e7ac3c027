"""The Anthropic messages protocol."""

from __future__ import annotations

import msgspec

from operant.ext.providers.anthropic_events import (
    BlockGrown,
    BlockPiece,
    BlockStarted,
    DeltaPiece,
    Event,
    Failed,
    Started,
    Stop,
    Stopped,
    UsagePiece,
    read_event,
)
from operant.ext.providers.anthropic_wire import DIALECT, REDACTED, SIGNED, Requests
from operant.ext.providers.dialect import apart
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.foreign import marked
from operant.ext.providers.refusals import failure, hidden
from operant.kit.sse import ServerEvent
from operant.sdk import (
    Blobs,
    Facts,
    ModelError,
    ModelRequest,
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

_VERSION = "2023-06-01"
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class Anthropic:
    """The Anthropic messages protocol."""

    def __init__(self, endpoint: Endpoint, blobs: Blobs) -> None:
        self._endpoint = endpoint
        self._requests = Requests(blobs, endpoint.name)

    def address(self, model: str) -> str:
        """Return where requests go."""
        return self._endpoint.address("/messages")

    def headers(self) -> dict[str, str]:
        """Return the headers of a request; the configured ones win."""
        headers = self._endpoint.authorization("x-api-key")
        named = any(name.casefold() == "anthropic-version" for name in headers)
        return headers if named else {"anthropic-version": _VERSION, **headers}

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return a request's body."""
        return await self._requests.body(request, facts)

    def gathering(self, model: str) -> MessageGathering:
        """Begin a reply."""
        return MessageGathering(self._endpoint, model)


class MessageGathering:
    """Put a reply together out of its blocks; calls come out only when all of them are there."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint = endpoint
        self._model = model
        self._blocks: dict[int, _Block] = {}
        self._stop = Stop()
        self._counted = UsagePiece()
        self._thought = 0
        self.done = False

    def add(self, event: ServerEvent) -> list[StreamPart]:
        """Take an event in and return what it shows."""
        if event.data == "[DONE]":
            return []
        try:
            kind, read = read_event(event.data)
        except msgspec.MsgspecError as error:
            raise ModelError("cut", f"{self._endpoint.name} sent an event that is no JSON of the protocol.") from error
        if kind == "message_stop":
            self.done = True
        return self._take(read) if read is not None else []

    def _take(self, event: Event) -> list[StreamPart]:
        match event:
            case Started():
                self._count(event.message.usage if event.message else None)
            case BlockStarted():
                return self._begin(event)
            case BlockGrown():
                return self._grow(event)
            case Stopped():
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._stop = event.delta
            case Failed():
                fault = event.error
                raise failure(self._endpoint, (fault and fault.type) or "", (fault and fault.message) or "")
        return []

    def _begin(self, event: BlockStarted) -> list[StreamPart]:
        if event.index in self._blocks:
            return []
        block = self._blocks[event.index] = _Block(event.content_block)
        return _shown(block.type, block.opening)

    def _grow(self, event: BlockGrown) -> list[StreamPart]:
        block = self._blocks.get(event.index)
        return _shown(block.type, block.add(event.delta)) if block is not None else []

    def _count(self, usage: UsagePiece | None) -> None:
        """Take a count in. Counts only ever grow; some servers know the true ones only at the end."""
        if usage is None:
            return
        if usage.output_tokens_details is not None:
            self._thought = max(self._thought, usage.output_tokens_details.thinking_tokens or 0)
        before = self._counted
        self._counted = UsagePiece(
            input_tokens=max(before.input_tokens or 0, usage.input_tokens or 0),
            cache_creation_input_tokens=max(
                before.cache_creation_input_tokens or 0, usage.cache_creation_input_tokens or 0
            ),
            cache_read_input_tokens=max(before.cache_read_input_tokens or 0, usage.cache_read_input_tokens or 0),
            output_tokens=max(before.output_tokens or 0, usage.output_tokens or 0),
        )

    def reply(self) -> Reply:
        """Return the whole reply. Raises `ModelError` when the stream ended before it was one, or it is none."""
        reason = self._stop.stop_reason
        if not reason and not (self.done and self._blocks):
            raise ModelError("cut", f"{self._endpoint.name} broke off before its answer was whole.")
        parts = [part for _, block in sorted(self._blocks.items()) for part in block.parts(self._endpoint.name)]
        if not any(isinstance(part, Text) for part in parts):
            self._check_silent(reason or "")
        finish = "refusal" if reason == "refusal" else _FINISH.get(reason or "", reason or "stop")
        if finish in ("length", "refusal"):
            # The last call may be half a call, and half a call is none.
            parts = [part for part in parts if not isinstance(part, ToolCall)]
        elif finish in ("stop", "tool_calls"):
            finish = "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop"
        return Reply(
            parts=apart(parts), model=self._model, provider=self._endpoint.name, finish=finish, usage=self._usage()
        )

    def _check_silent(self, reason: str) -> None:
        """Raise for an answer without a word that has a better name than an empty one."""
        if reason == "refusal":
            details = self._stop.stop_details
            why = hidden((details and (details.explanation or details.category)) or "", self._endpoint)
            raise ModelError("content_filter", f"{self._endpoint.name} refused to answer{': ' + why if why else '.'}")
        if reason == "model_context_window_exceeded":
            raise ModelError("context_overflow", f"The conversation fills the window of {self._model}.")

    def _usage(self) -> Usage:
        counted = self._counted
        cached, written = counted.cache_read_input_tokens or 0, counted.cache_creation_input_tokens or 0
        return Usage(
            input=(counted.input_tokens or 0) + cached + written,
            cached=cached,
            cache_write=written,
            output=counted.output_tokens or 0,
            reasoning=self._thought,
            calls=1,
        )


class _Block:
    """A block that is being put together; of an unknown type it comes to nothing."""

    def __init__(self, piece: BlockPiece) -> None:
        self.type = piece.type
        self.opening = piece.text or piece.thinking or ""
        self._words = [self.opening]
        self._signature = piece.signature or ""
        self._data = piece.data or ""
        self._id = piece.id or ""
        self._name = piece.name or ""
        self._input = bytes(piece.input).decode()
        self._arguments: list[str] = []

    def add(self, delta: DeltaPiece) -> str:
        """Take a piece in and return its words."""
        words = delta.text or delta.thinking or ""
        self._words.append(words)
        self._signature += delta.signature or ""
        self._arguments.append(delta.partial_json or "")
        return words

    def parts(self, provider: str) -> list[Part]:
        """Return the part that this block is."""
        words = "".join(self._words)
        if self.type == "text":
            return [Text(text=words)] if words else []
        if self.type == "tool_use":
            return [ToolCall(id=self._id, name=self._name, arguments="".join(self._arguments) or self._input or "{}")]
        if self.type == "redacted_thinking":
            return [Reasoning(text="", opaque=marked(DIALECT, provider, REDACTED + self._data))]
        if self.type == "thinking" and self._signature:
            return [Reasoning(text=words, opaque=marked(DIALECT, provider, SIGNED + self._signature))]
        return [Reasoning(text=words)] if self.type == "thinking" and words else []


def _shown(kind: str, words: str) -> list[StreamPart]:
    if not words:
        return []
    if kind == "text":
        return [TextDelta(text=words)]
    return [ReasoningDelta(text=words)] if kind == "thinking" else []
