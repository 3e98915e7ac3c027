"""The OpenAI chat protocol: what nearly every server speaks."""

from __future__ import annotations

from typing import Any

import msgspec

from operant.ext.providers.chat_wire import (
    Choice,
    Chunk,
    OutputDetails,
    PromptDetails,
    Requests,
    UsagePiece,
    decode_chunk,
)
from operant.ext.providers.dialect import apart
from operant.ext.providers.endpoint import Endpoint
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

_TICKS = 10**10
_FINISH = {"tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length", "stop": "stop"}


class OpenAIChat:
    """The OpenAI chat protocol."""

    def __init__(self, endpoint: Endpoint, blobs: Blobs) -> None:
        self._endpoint = endpoint
        self._requests = Requests(blobs, endpoint.quirks)

    def address(self, model: str) -> str:
        """Return where requests go."""
        return self._endpoint.address("/chat/completions")

    def headers(self) -> dict[str, str]:
        """Return the headers of a request."""
        return self._endpoint.authorization("bearer")

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return a request's body."""
        return await self._requests.body(request, facts)

    def gathering(self, model: str) -> ChatGathering:
        """Begin a reply."""
        return ChatGathering(self._endpoint.name, model, self._endpoint.quirks.charges)


class ChatGathering:
    """Put a reply together; calls come out only when all of them are there."""

    def __init__(self, provider: str, model: str, charges: bool = False) -> None:
        self._provider = provider
        self._model = model
        self._charges = charges
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _GatheredCall] = {}
        self._finish = ""
        self._refused = False
        self._usage = Usage(calls=1)
        self.done = False

    def add(self, event: ServerEvent) -> list[StreamPart]:
        """Take a chunk in and return what it shows."""
        if event.data == "[DONE]":
            self.done = True
            return []
        try:
            chunk = decode_chunk(event.data)
        except msgspec.MsgspecError as error:
            raise ModelError("cut", f"{self._provider} sent a chunk that is no JSON of the protocol.") from error
        if chunk.error is not None:
            raise ModelError("server", f"{self._provider} failed in the middle: {chunk.error.message or 'no reason'}")
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage, self._charges)
        return [part for choice in chunk.choices for part in self._choice(chunk, choice)]

    def _choice(self, chunk: Chunk, choice: Choice) -> list[StreamPart]:
        shown: list[StreamPart] = []
        delta = choice.delta
        if delta is not None and not self._finish:
            thought = delta.reasoning_content or delta.reasoning
            if thought:
                self._reasoning.append(thought)
                shown.append(ReasoningDelta(text=thought))
            self._refused = self._refused or bool(delta.refusal)
            words = delta.content or delta.refusal
            if words:
                self._text.append(words)
                shown.append(TextDelta(text=words))
            for piece in delta.tool_calls or ():
                self._calls.setdefault(piece.index, _GatheredCall()).add(piece)
        self._finish = choice.finish_reason or self._finish
        return shown

    def reply(self) -> Reply:
        """Return the whole reply. Raises `ModelError` when the stream ended before it was one."""
        if not self._finish and not (self.done and (self._text or self._calls)):
            raise ModelError("cut", f"{self._provider} broke off before its answer was whole.")
        if self._finish == "content_filter" and not self._text:
            raise ModelError("content_filter", f"{self._provider} withheld its answer (content filter).")
        parts: list[Part] = []
        if self._reasoning:
            parts.append(Reasoning(text="".join(self._reasoning)))
        if self._text:
            parts.append(Text(text="".join(self._text)))
        # A reply that hit the output limit may hold half a call, and half a call is none.
        if self._finish != "length":
            parts += self._whole_calls()
        finish = "refusal" if self._refused else _FINISH.get(self._finish, self._finish or "stop")
        return Reply(parts=apart(parts), model=self._model, provider=self._provider, finish=finish, usage=self._usage)

    def _whole_calls(self) -> list[ToolCall]:
        return [
            ToolCall(id=one.id, name=one.name, arguments="".join(one.arguments))
            for _, one in sorted(self._calls.items())
        ]


class _GatheredCall:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def add(self, piece: Any) -> None:
        self.id = self.id or piece.id or ""
        if piece.function is not None:
            self.name = self.name or piece.function.name or ""
            self.arguments.append(piece.function.arguments or "")


def _usage(piece: UsagePiece, charges: bool) -> Usage:
    prompt, output = piece.prompt_tokens_details or PromptDetails(), piece.completion_tokens_details or OutputDetails()
    taken, given, thought = piece.prompt_tokens or 0, piece.completion_tokens or 0, output.reasoning_tokens or 0
    if thought and piece.total_tokens == taken + given + thought:
        given += thought  # xAI counts thinking beside the output, and charges both
    return Usage(
        input=taken,
        cached=prompt.cached_tokens or _count(piece.cached_tokens) or _count(piece.prompt_cache_hit_tokens),
        cache_write=prompt.cache_write_tokens or 0,
        output=given,
        reasoning=thought,
        calls=1,
        usd=_cost(piece, charges),
    )


def _count(said: Any) -> int:
    return said if isinstance(said, int) else 0


def _cost(piece: UsagePiece, charges: bool) -> float:
    """Return what the provider says that a call cost, 0 where it does not say."""
    if isinstance(piece.cost_in_usd_ticks, int):
        return piece.cost_in_usd_ticks / _TICKS
    return float(piece.cost) if charges and isinstance(piece.cost, int | float) else 0.0
