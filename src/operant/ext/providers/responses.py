"""The OpenAI responses protocol, without any state kept at the provider."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import msgspec

from operant.ext.providers.dialect import Encoded, id_for, is_image, named, words_of
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.responses_wire import Mark, ResponsesGathering
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

_LEAST_OUTPUT = 16
_json = msgspec.json.Encoder(order="deterministic")


class OpenAIResponses:
    """The OpenAI responses protocol."""

    def __init__(self, endpoint: Endpoint, blobs: Blobs) -> None:
        self._endpoint = endpoint
        self._blobs = blobs
        self._mark = Mark(endpoint.name)
        self._encoded = Encoded()
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def address(self, model: str) -> str:
        """Return where requests go."""
        return self._endpoint.address("/responses")

    def headers(self) -> dict[str, str]:
        """Return the headers of a request."""
        return self._endpoint.authorization("bearer")

    def gathering(self, model: str) -> ResponsesGathering:
        """Begin a reply."""
        return ResponsesGathering(self._endpoint.name, model, self._mark)

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return a request's body. What may change from one to the next stands behind the input."""
        pieces = [b'{"model":', _json.encode(request.model)]
        if request.tools:
            pieces += [b',"tools":', self._tool_list(request.tools)]
        if request.system:
            pieces += [b',"instructions":', _json.encode(request.system)]
        encode = partial(self._bytes, facts=facts)
        items = [await self._encoded.of(message, facts.images, encode) for message in request.messages]
        pieces += [b',"input":[', b",".join(filter(None, items)), b"],", _limits(request, facts), b"}"]
        return b"".join(pieces)

    def _tool_list(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools and self._tools[0] != tools:
            shapes = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                }
                for tool in tools
            ]
            self._tools = (tools, _json.encode(shapes))
        return self._tools[1]

    async def _bytes(self, message: Message, facts: Facts) -> bytes:
        """Return a message's items without brackets; nothing for one that has nothing to say."""
        if message.role == "assistant":
            items = [item for part in message.parts if (item := self._said(part)) is not None]
            return _json.encode(items)[1:-1]
        plain = not any(isinstance(part, BlobRef) for part in message.parts)
        content: Any = words_of(message.parts) if plain else [await self._given(part, facts) for part in message.parts]
        if message.role == "tool":
            return _json.encode({"type": "function_call_output", "call_id": id_for(message.call_id), "output": content})
        return _json.encode({"type": "message", "role": "user", "content": content}) if content else b""

    def _said(self, part: Part) -> dict[str, Any] | None:
        if isinstance(part, Reasoning):
            return self._mark.item(part)
        if isinstance(part, ToolCall):
            return {
                "type": "function_call",
                "call_id": id_for(part.id),
                "name": part.name,
                "arguments": part.arguments or "{}",
            }
        if isinstance(part, Text) and part.text:
            return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": part.text}]}
        return None

    async def _given(self, part: Part, facts: Facts) -> dict[str, Any]:
        if isinstance(part, BlobRef) and facts.images and is_image(part):
            return {"type": "input_image", "image_url": await self._data(part)}
        if isinstance(part, BlobRef) and facts.files and part.media_type == "application/pdf":
            return {"type": "input_file", "filename": part.name or "file.pdf", "file_data": await self._data(part)}
        return {"type": "input_text", "text": named(part) if isinstance(part, BlobRef) else words_of((part,))}

    async def _data(self, ref: BlobRef) -> str:
        data = base64.b64encode(await self._blobs.get_blob(ref.digest)).decode()
        return f"data:{ref.media_type};base64,{data}"


def _limits(request: ModelRequest, facts: Facts) -> bytes:
    limits: Parameters = request.parameters
    fields: dict[str, Any] = {"store": False, "stream": True}
    if request.session:
        fields["prompt_cache_key"] = request.session[:64]
    if limits.max_output_tokens is not None:
        fields["max_output_tokens"] = max(limits.max_output_tokens, _LEAST_OUTPUT)
    if limits.temperature is not None:
        fields["temperature"] = limits.temperature
    if limits.effort is not None or facts.reasoning:
        effort = {"effort": limits.effort} if limits.effort is not None else {}
        fields["reasoning"] = {**effort, "summary": "auto"}
        fields["include"] = ["reasoning.encrypted_content"]
    if limits.schema is not None:
        answer = {"type": "json_schema", "name": "answer", "schema": limits.schema, "strict": True}
        fields["text"] = {"format": answer}
    return _json.encode(fields)[1:-1]
