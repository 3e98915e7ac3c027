"""What comes back over the Google Gemini protocol."""

from __future__ import annotations

from typing import Any

import msgspec

from operant.ext.providers.dialect import apart
from operant.ext.providers.refusals import kind_of
from operant.kit.sse import ServerEvent
from operant.sdk import ModelError, Part, Reasoning, ReasoningDelta, Reply, StreamPart, Text, TextDelta, ToolCall, Usage

_WITHHELD = frozenset(
    ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR")
)
_MALFORMED = frozenset(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"))


class Mark:
    """Whose signatures they are: one is good only where it was given."""

    def __init__(self, provider: str) -> None:
        self._prefix = f"gemini:{provider}:"

    def opaque(self, signature: str) -> str:
        """Mark a signature."""
        return self._prefix + signature if signature else ""

    def signature(self, opaque: str) -> str:
        """Return a signature that was given here, and nothing for another."""
        return opaque.removeprefix(self._prefix) if opaque.startswith(self._prefix) else ""


class Function(msgspec.Struct):
    """A call."""

    name: str = ""
    args: dict[str, Any] | None = None
    id: str = ""


class Piece(msgspec.Struct, rename="camel"):
    """A part of a content."""

    text: str | None = None
    thought: bool = False
    thought_signature: str = ""
    function_call: Function | None = None


class Content(msgspec.Struct):
    """What the model said."""

    parts: list[Piece] = []


class Candidate(msgspec.Struct, rename="camel"):
    """The one answer that is asked for."""

    content: Content | None = None
    finish_reason: str | None = None


class Count(msgspec.Struct, rename="camel"):
    """The provider's count."""

    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


class Feedback(msgspec.Struct, rename="camel"):
    """Why there is no answer."""

    block_reason: str | None = None


class Fault(msgspec.Struct):
    """An error in place of a response."""

    code: int = 500
    message: str = ""


class Response(msgspec.Struct, rename="camel"):
    """One piece of a stream; what we do not know is skipped."""

    candidates: list[Candidate] = []
    usage_metadata: Count | None = None
    prompt_feedback: Feedback | None = None
    error: Fault | None = None


_decode = msgspec.json.Decoder(Response).decode


class GeminiGathering:
    """Put a reply together; every piece brings whole parts."""

    def __init__(self, provider: str, model: str, mark: Mark) -> None:
        self._provider = provider
        self._model = model
        self._mark = mark
        self._parts: list[Part] = []
        self._finish = ""
        self._blocked = ""
        self._count = Count()
        self.done = False

    def add(self, event: ServerEvent) -> list[StreamPart]:
        """Take a piece in and return what it shows."""
        try:
            response = _decode(event.data)
        except msgspec.MsgspecError as error:
            raise ModelError("cut", f"{self._provider} sent a piece that is no JSON of the protocol.") from error
        if response.error is not None:
            kind = kind_of(response.error.code, response.error.message)
            raise ModelError(kind, f"{self._provider} failed in the middle: {response.error.message}")
        if response.usage_metadata is not None:
            self._count = response.usage_metadata
        if response.prompt_feedback is not None:
            self._blocked = response.prompt_feedback.block_reason or ""
        return [part for candidate in response.candidates[:1] for part in self._candidate(candidate)]

    def reply(self) -> Reply:
        """Return the whole reply. Raises `ModelError` when the stream ended before it was one, or held none."""
        said = any(isinstance(part, Text) for part in self._parts)
        if self._blocked or (self._finish in _WITHHELD and not said):
            why = (self._blocked or self._finish).lower().replace("_", " ")
            raise ModelError("content_filter", f"{self._provider} withheld its answer ({why}).")
        if not self._finish:
            raise ModelError("cut", f"{self._provider} broke off before its answer was whole.")
        if self._finish in _MALFORMED:
            raise ModelError("malformed", f"{self._provider} made a call that is none ({self._finish.lower()}).")
        finish = _finish(self._finish, self._parts)
        # At the output limit the last call may be half a call, and half a call is none.
        parts = [part for part in self._parts if not (finish == "length" and isinstance(part, ToolCall))]
        return Reply(
            parts=apart(parts), model=self._model, provider=self._provider, finish=finish, usage=_usage(self._count)
        )

    def _candidate(self, candidate: Candidate) -> list[StreamPart]:
        shown: list[StreamPart] = []
        over = bool(self._finish)
        self._finish = candidate.finish_reason or self._finish
        for piece in candidate.content.parts if candidate.content and not over else ():
            shown += self._piece(piece)
        return shown

    def _piece(self, piece: Piece) -> list[StreamPart]:
        opaque = self._mark.opaque(piece.thought_signature)
        if piece.function_call is not None:
            call = piece.function_call
            arguments = msgspec.json.encode(call.args or {}).decode()
            self._parts.append(ToolCall(id=call.id, name=call.name, arguments=arguments, opaque=opaque))
            return []
        words = piece.text or ""
        if piece.thought:
            self._join(Reasoning(text=words, opaque=opaque))
            return [ReasoningDelta(text=words)] if words else []
        if words:
            self._join(Text(text=words))
        if opaque:
            self._parts.append(Reasoning(text="", opaque=opaque))
        return [TextDelta(text=words)] if words else []

    def _join(self, part: Text | Reasoning) -> None:
        """Add words to those before them, but not past a signature."""
        last = self._parts[-1] if self._parts else None
        if isinstance(part, Text) and isinstance(last, Text):
            self._parts[-1] = Text(text=last.text + part.text)
        elif isinstance(part, Reasoning) and isinstance(last, Reasoning) and last.text and not last.opaque:
            self._parts[-1] = Reasoning(text=last.text + part.text, opaque=part.opaque)
        else:
            self._parts.append(part)


def _finish(reason: str, parts: list[Part]) -> str:
    if reason == "MAX_TOKENS":
        return "length"
    if reason in _WITHHELD:
        return "content_filter"
    return "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop"


def _usage(count: Count) -> Usage:
    thoughts = count.thoughts_token_count or 0
    return Usage(
        input=(count.prompt_token_count or 0) + (count.tool_use_prompt_token_count or 0),
        cached=count.cached_content_token_count or 0,
        output=(count.candidates_token_count or 0) + thoughts,
        reasoning=thoughts,
        calls=1,
    )
