"""The OpenAI chat protocol as bytes: requests that only ever grow at their end, and streams that are read once.

The request is `{"model", "tools", "messages": [...` in this order, so that the next request of a session is the last
one plus a suffix and a provider's prefix cache keeps what it has. What may change stands behind the messages.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from operant.ext.providers.dialect import Encoded, is_image, words_of
from operant.ext.providers.endpoint import Quirks
from operant.sdk import BlobRef, Blobs, Facts, Message, ModelRequest, Parameters, Part, Reasoning, ToolCall, ToolSpec

_MARKED = "anthropic/"
"""Models that a reseller takes cache markers for."""
_json = msgspec.json.Encoder(order="deterministic")


class Requests:
    """Encode requests; what was encoded before is not encoded again."""

    def __init__(self, blobs: Blobs, quirks: Quirks) -> None:
        self._blobs = blobs
        self._quirks = quirks
        self._encoded = Encoded()
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return the request's body."""
        pieces = [b'{"model":', _json.encode(request.model)]
        if request.tools:
            pieces += [b',"tools":', self._tool_list(request.tools)]
        marked = self._quirks.markers and request.model.startswith(_MARKED)
        system = _json.encode({"role": "system", "content": _marked(request.system) if marked else request.system})
        messages = await self._conversation(request.messages, facts.images)
        if marked and messages and _is_words(request.messages[-1]):
            messages[-1] = _json.encode({"role": "user", "content": _marked(words_of(request.messages[-1].parts))})
        pieces += [b',"messages":[', b",".join([system, *messages]), b"]", self._limits(request.parameters)]
        pieces.append(b',"stream":true')
        if self._quirks.stream_usage:
            pieces.append(b',"stream_options":{"include_usage":true}')
        return b"".join([*pieces, b"}"])

    def _limits(self, limits: Parameters) -> bytes:
        """Return what may differ from request to request; it stands behind the messages."""
        fields: dict[str, Any] = {}
        if limits.max_output_tokens is not None:
            fields[self._quirks.output_limit] = limits.max_output_tokens
        if limits.temperature is not None:
            fields["temperature"] = limits.temperature
        if limits.effort is not None and self._quirks.effort_field:
            fields[self._quirks.effort_field] = limits.effort
        if limits.schema is not None:
            answer = {"name": "answer", "schema": limits.schema, "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": answer}
        return b"," + _json.encode(fields)[1:-1] if fields else b""

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

    async def _conversation(self, messages: Sequence[Message], images: bool) -> list[bytes]:
        """Encode messages. A tool's result can only be words here, so its pictures follow the results as a message."""
        encoded: list[bytes] = []
        brought: list[BlobRef] = []
        for message in messages:
            if brought and message.role != "tool":
                encoded.append(_json.encode(await self._shown(brought)))
                brought = []
            data = self._encoded.peek(message, images)
            encoded.append(data or await self._encoded.of(message, images, partial(self._bytes, images=images)))
            if images and message.role == "tool":
                brought += _pictures(message)
        return [*encoded, _json.encode(await self._shown(brought))] if brought else encoded

    async def _bytes(self, message: Message, images: bool) -> bytes:
        return _json.encode(await self._shape(message, images))

    async def _shape(self, message: Message, images: bool) -> dict[str, Any]:
        if message.role == "tool":
            return {"role": "tool", "tool_call_id": message.call_id, "content": words_of(message.parts)}
        if message.role == "user":
            return {"role": "user", "content": await self._content(message, images)}
        shape: dict[str, Any] = {"role": "assistant", "content": words_of(message.parts) or None}
        thoughts = "".join(part.text for part in message.parts if isinstance(part, Reasoning))
        if thoughts and self._quirks.reasoning_field:
            shape[self._quirks.reasoning_field] = thoughts
        calls = [
            {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
            for part in message.parts
            if isinstance(part, ToolCall)
        ]
        if calls:
            shape["tool_calls"] = calls
        return shape

    async def _content(self, message: Message, images: bool) -> Any:
        """Return plain words, or a list where there is a picture among them."""
        if not images or not _pictures(message):
            return words_of(message.parts)
        return [await self._piece(part) for part in message.parts]

    async def _shown(self, brought: list[BlobRef]) -> dict[str, Any]:
        lead = {"type": "text", "text": "[what the tools brought]"}
        return {"role": "user", "content": [lead, *[await self._piece(one) for one in brought]]}

    async def _piece(self, part: Part) -> dict[str, Any]:
        if isinstance(part, BlobRef) and is_image(part):
            data = base64.b64encode(await self._blobs.get_blob(part.digest)).decode()
            return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}
        return {"type": "text", "text": words_of((part,))}


def _marked(words: str) -> list[dict[str, Any]]:
    """Return words with a cache marker at their end."""
    return [{"type": "text", "text": words, "cache_control": {"type": "ephemeral"}}]


def _is_words(message: Message) -> bool:
    return message.role == "user" and not _pictures(message)


def _pictures(message: Message) -> list[BlobRef]:
    return [part for part in message.parts if isinstance(part, BlobRef) and is_image(part)]


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
    """How many of the prompt's tokens were cached, and how many are from now on."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OutputDetails(msgspec.Struct):
    """How many of the answer's tokens were thinking."""

    reasoning_tokens: int | None = None


class UsagePiece(msgspec.Struct):
    """The provider's count; some say in places of their own what was cached, and what it cost."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    cached_tokens: Any = None
    """Moonshot."""
    prompt_cache_hit_tokens: Any = None
    """DeepSeek."""
    cost: Any = None
    """OpenRouter, in US dollars; others mean something else by it."""
    cost_in_usd_ticks: Any = None
    """xAI, ten thousand millions to a US dollar."""


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
