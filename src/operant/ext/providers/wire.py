"""The OpenAI chat protocol as bytes: requests that only ever grow at their end, and streams that are read once.

The request is `{"model", "tools", "messages": [...` in this order, so that the next request of a session is the last
one plus a suffix and a provider's prefix cache keeps what it has. What may change stands behind the messages.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from operant.sdk import BlobRef, Blobs, Message, ModelRequest, Reasoning, Text, ToolCall, ToolSpec

_json = msgspec.json.Encoder(order="deterministic")


class Requests:
    """Encode requests; what was encoded before is not encoded again."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._encoded: dict[int, tuple[Message, bytes]] = {}
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    async def body(self, request: ModelRequest) -> bytes:
        """Return the request's body."""
        pieces = [b'{"model":', _json.encode(request.model)]
        if request.tools:
            pieces += [b',"tools":', self._tool_list(request.tools)]
        system = _json.encode({"role": "system", "content": request.system})
        messages = [await self._message(message) for message in request.messages]
        pieces += [b',"messages":[', b",".join([system, *messages]), b"]"]
        limits = request.parameters
        if limits.max_output_tokens is not None:
            pieces.append(b',"max_completion_tokens":%d' % limits.max_output_tokens)
        if limits.temperature is not None:
            pieces += [b',"temperature":', _json.encode(limits.temperature)]
        pieces.append(b',"stream":true,"stream_options":{"include_usage":true}}')
        return b"".join(pieces)

    def _tool_list(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools and self._tools[0] != tools:
            shapes = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in tools
            ]
            self._tools = (tools, _json.encode(shapes))
        return self._tools[1]

    async def _message(self, message: Message) -> bytes:
        kept = self._encoded.get(id(message))
        if kept is not None and kept[0] is message:
            return kept[1]
        data = _json.encode(await self._shape(message))
        if len(self._encoded) > _KEPT:
            self._encoded.clear()
        self._encoded[id(message)] = (message, data)
        return data

    async def _shape(self, message: Message) -> dict[str, Any]:
        if message.role == "tool":
            return {"role": "tool", "tool_call_id": message.call_id, "content": _words(message.parts)}
        if message.role == "user":
            return {"role": "user", "content": await self._content(message)}
        shape: dict[str, Any] = {"role": "assistant", "content": _words(message.parts) or None}
        calls = [
            {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
            for part in message.parts
            if isinstance(part, ToolCall)
        ]
        if calls:
            shape["tool_calls"] = calls
        return shape

    async def _content(self, message: Message) -> Any:
        """Return plain words, or a list where there is a picture among them."""
        if not any(isinstance(part, BlobRef) and _is_image(part) for part in message.parts):
            return _words(message.parts)
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, BlobRef) and _is_image(part):
                data = base64.b64encode(await self._blobs.get_blob(part.digest)).decode()
                content.append({"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}})
            else:
                content.append({"type": "text", "text": _words((part,))})
        return content


_KEPT = 50_000


def _is_image(ref: BlobRef) -> bool:
    return ref.media_type.startswith("image/")


def _words(parts: Sequence[Text | Reasoning | ToolCall | BlobRef]) -> str:
    words: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            words.append(part.text)
        elif isinstance(part, BlobRef):
            words.append(f"[file {part.name or part.digest[:12]}, {part.media_type}, {part.size} bytes]")
    return "".join(words)


# ---------------------------------------------------------------------------- what comes back


class Function(msgspec.Struct):
    """A piece of a call."""

    name: str | None = None
    arguments: str | None = None


class CallPiece(msgspec.Struct):
    """A piece of one of the calls; pieces with the same index belong together."""

    index: int = 0
    id: str | None = None
    function: Function | None = None


class DeltaPiece(msgspec.Struct):
    """What one chunk adds."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[CallPiece] | None = None
    refusal: str | None = None


class Choice(msgspec.Struct):
    """The one choice that is asked for."""

    delta: DeltaPiece | None = None
    finish_reason: str | None = None


class PromptDetails(msgspec.Struct):
    """How many of the prompt's tokens were cached."""

    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct):
    """How many of the answer's tokens were thinking."""

    reasoning_tokens: int | None = None


class UsagePiece(msgspec.Struct):
    """The provider's count."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None


class ErrorPiece(msgspec.Struct):
    """An error that came inside a stream, or as a body."""

    message: str | None = None
    code: str | int | None = None
    type: str | None = None


class Chunk(msgspec.Struct):
    """One chunk of a stream; what we do not know is skipped."""

    choices: list[Choice] = []
    usage: UsagePiece | None = None
    model: str | None = None
    error: ErrorPiece | None = None


decode_chunk = msgspec.json.Decoder(Chunk).decode
