"""The Anthropic messages protocol."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from operant.ext.providers.anthropic_wire import AnthropicGathering, Mark
from operant.ext.providers.dialect import Encoded, id_for, is_image, named
from operant.ext.providers.endpoint import Endpoint
from operant.sdk import (
    BlobRef,
    Blobs,
    Facts,
    Message,
    ModelRequest,
    Parameters,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolSpec,
)

VERSION = "2023-06-01"
_OUTPUT = 8192
_MARKER: dict[str, Any] = {"type": "ephemeral"}
_json = msgspec.json.Encoder(order="deterministic")


class Anthropic:
    """The Anthropic messages protocol."""

    def __init__(self, endpoint: Endpoint, blobs: Blobs) -> None:
        self._endpoint = endpoint
        self._blobs = blobs
        self._mark = Mark(endpoint.name)
        self._encoded = Encoded()
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def address(self, model: str) -> str:
        """Return where requests go."""
        return self._endpoint.address("/messages")

    def headers(self) -> dict[str, str]:
        """Return the headers of a request."""
        return {"anthropic-version": VERSION, **self._endpoint.authorization("x-api-key")}

    def gathering(self, model: str) -> AnthropicGathering:
        """Begin a reply."""
        return AnthropicGathering(self._endpoint.name, model, self._mark)

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return a request's body. What may change from one to the next stands behind the messages."""
        pieces = [b'{"model":', _json.encode(request.model)]
        if request.tools:
            pieces += [b',"tools":', self._tool_list(request.tools)]
        if request.system:
            block = {"type": "text", "text": request.system, "cache_control": _MARKER}
            pieces += [b',"system":[', _json.encode(block), b"]"]
        turns = await self._turns(request.messages, facts)
        pieces += [b',"messages":[', b",".join(turns), b"],", _limits(request.parameters, facts), b"}"]
        return b"".join(pieces)

    def _tool_list(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools and self._tools[0] != tools:
            shapes: list[dict[str, Any]] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in tools
            ]
            shapes[-1]["cache_control"] = _MARKER
            self._tools = (tools, _json.encode(shapes))
        return self._tools[1]

    async def _turns(self, messages: Sequence[Message], facts: Facts) -> list[bytes]:
        """Join what follows each other on one side: results and what the person said meanwhile are one message."""
        turns: list[bytes] = []
        side, blocks = "", list[bytes]()
        for message in messages:
            whose = "assistant" if message.role == "assistant" else "user"
            if whose != side and blocks:
                turns.append(_turn(side, blocks))
                blocks = []
            side = whose
            encoded = await self._encoded.of(message, facts.images, partial(self._bytes, facts=facts))
            blocks += [encoded] if encoded else []
        return [*turns, _turn(side, blocks)] if blocks else turns

    async def _bytes(self, message: Message, facts: Facts) -> bytes:
        """Return a message's blocks without brackets; nothing for one that has nothing to say."""
        shapes = [await self._result(message, facts)] if message.role == "tool" else await self._blocks(message, facts)
        return _json.encode(shapes)[1:-1]

    async def _result(self, message: Message, facts: Facts) -> dict[str, Any]:
        content = await self._blocks(message, facts)
        return {"type": "tool_result", "tool_use_id": id_for(message.call_id), "content": content or "(nothing)"}

    async def _blocks(self, message: Message, facts: Facts) -> list[dict[str, Any]]:
        found = [await self._block(part, facts) for part in message.parts]
        return [one for one in found if one is not None]

    async def _block(self, part: Part, facts: Facts) -> dict[str, Any] | None:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text} if part.text.strip() else None
        if isinstance(part, Reasoning):
            return self._mark.block(part)
        if isinstance(part, ToolCall):
            return {"type": "tool_use", "id": id_for(part.id), "name": part.name, "input": _object(part.arguments)}
        return await self._file(part, facts)

    async def _file(self, ref: BlobRef, facts: Facts) -> dict[str, Any]:
        kind = "image" if facts.images and is_image(ref) else ""
        kind = "document" if facts.files and ref.media_type == "application/pdf" else kind
        if not kind:
            return {"type": "text", "text": named(ref)}
        data = base64.b64encode(await self._blobs.get_blob(ref.digest)).decode()
        return {"type": kind, "source": {"type": "base64", "media_type": ref.media_type, "data": data}}


def _turn(side: str, blocks: Sequence[bytes]) -> bytes:
    return b'{"role":"%s","content":[%s]}' % (side.encode(), b",".join(blocks))


def _object(arguments: str) -> Any:
    """Return arguments as an object; broken ones in a form that still shows what the model wrote."""
    try:
        return msgspec.json.decode(arguments.encode() or b"{}", type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return {"not_json": arguments}


def _limits(limits: Parameters, facts: Facts) -> bytes:
    output = limits.max_output_tokens or facts.output or _OUTPUT
    fields: dict[str, Any] = {"cache_control": _MARKER, "max_tokens": output, "stream": True}
    config: dict[str, Any] = {}
    if limits.schema is not None:
        config["format"] = {"type": "json_schema", "schema": limits.schema}
    if limits.effort == "none":
        fields["thinking"] = {"type": "disabled"}
    elif limits.effort is not None:
        fields["thinking"] = {"type": "adaptive"}
        config["effort"] = limits.effort
    elif limits.temperature is not None:
        fields["temperature"] = limits.temperature
    if config:
        fields["output_config"] = config
    return _json.encode(fields)[1:-1]
