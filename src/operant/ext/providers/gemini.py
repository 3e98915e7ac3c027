"""The Google Gemini protocol."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec

from operant.ext.providers.dialect import Encoded, id_for, is_image, named, words_of
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.foreign import arguments_of
from operant.ext.providers.gemini_wire import GeminiGathering, Mark
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

_BUDGETS = {"none": 0, "low": 1024, "medium": 8192, "high": 24_576}
_LEVELS = {"none": "minimal", "low": "low", "medium": "medium", "high": "high"}
_STRANGER = "skip_thought_signature_validator"
"""What stands for the signature of a call that another model made."""
_json = msgspec.json.Encoder(order="deterministic")


class Gemini:
    """The Google Gemini protocol."""

    def __init__(self, endpoint: Endpoint, blobs: Blobs) -> None:
        self._endpoint = endpoint
        self._blobs = blobs
        self._mark = Mark(endpoint.name)
        self._encoded = Encoded()
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def address(self, model: str) -> str:
        """Return where requests for a model go."""
        return self._endpoint.address(f"/models/{quote(model)}:streamGenerateContent?alt=sse")

    def headers(self) -> dict[str, str]:
        """Return the headers of a request."""
        return self._endpoint.authorization("x-goog-api-key")

    def gathering(self, model: str) -> GeminiGathering:
        """Begin a reply."""
        return GeminiGathering(self._endpoint.name, model, self._mark)

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return a request's body. What may change from one to the next stands behind the contents."""
        pieces: list[bytes] = [b"{"]
        if request.tools:
            pieces += [b'"tools":[{"functionDeclarations":', self._declarations(request.tools), b"}],"]
        if request.system:
            pieces += [b'"systemInstruction":', _json.encode({"parts": [{"text": request.system}]}), b","]
        contents = await self._contents(request.messages, facts)
        settings = _settings(request.model, request.parameters, facts)
        more = b',"generationConfig":' + _json.encode(settings) if settings else b""
        return b"".join([*pieces, b'"contents":[', b",".join(contents), b"]", more, b"}"])

    def _declarations(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools and self._tools[0] != tools:
            shapes = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
                for tool in tools
            ]
            self._tools = (tools, _json.encode(shapes))
        return self._tools[1]

    async def _contents(self, messages: Sequence[Message], facts: Facts) -> list[bytes]:
        """Join what follows each other on one side: all results of a step, and what the person says after."""
        contents: list[bytes] = []
        side, parts = "", list[bytes]()
        for message in messages:
            whose = "model" if message.role == "assistant" else "user"
            if whose != side and parts:
                contents.append(_content(side, parts))
                parts = []
            side = whose
            encoded = await self._encoded.of(message, facts.images, partial(self._bytes, facts=facts))
            parts += [encoded] if encoded else []
        return [*contents, _content(side, parts)] if parts else contents

    async def _bytes(self, message: Message, facts: Facts) -> bytes:
        """Return a message's parts without brackets; nothing for one that has nothing to say."""
        if message.role == "tool":
            return _json.encode(await self._result(message, facts))
        if message.role == "assistant":
            return _json.encode(self._said(message.parts))[1:-1]
        given = [await self._given(part, facts) for part in message.parts]
        return _json.encode([one for one in given if one.get("text") != ""])[1:-1]

    async def _result(self, message: Message, facts: Facts) -> dict[str, Any]:
        words = words_of([part for part in message.parts if not self._takes(part, facts)])
        response: dict[str, Any] = {"name": message.name, "id": id_for(message.call_id), "response": {"result": words}}
        files = [await self._given(part, facts) for part in message.parts if self._takes(part, facts)]
        if files:
            response["parts"] = files
        return {"functionResponse": response}

    def _said(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """Return what the model said, each signature on the part that it was given on."""
        found: list[dict[str, Any]] = []
        called = False
        for part in parts:
            if isinstance(part, Text) and part.text:
                found.append({"text": part.text})
            elif isinstance(part, Reasoning):
                self._sign(found, part)
            elif isinstance(part, ToolCall):
                found.append(self._call(part, first=not called))
                called = True
        return found

    def _call(self, call: ToolCall, *, first: bool) -> dict[str, Any]:
        made: dict[str, Any] = {"functionCall": {"name": call.name, "id": id_for(call.id), "args": arguments_of(call)}}
        signature = self._mark.signature(call.opaque) or (_STRANGER if first and not call.opaque else "")
        if first and not signature:
            signature = _STRANGER
        if signature:
            made["thoughtSignature"] = signature
        return made

    def _sign(self, found: list[dict[str, Any]], thought: Reasoning) -> None:
        """Put a signature that came without a call back where it was."""
        signature = self._mark.signature(thought.opaque)
        if not signature:
            return
        if thought.text:
            found.append({"text": thought.text, "thought": True, "thoughtSignature": signature})
        elif found and "text" in found[-1] and "thoughtSignature" not in found[-1]:
            found[-1]["thoughtSignature"] = signature
        else:
            found.append({"text": "", "thoughtSignature": signature})

    def _takes(self, part: Part, facts: Facts) -> bool:
        if not isinstance(part, BlobRef):
            return False
        return (facts.images and is_image(part)) or (facts.files and part.media_type == "application/pdf")

    async def _given(self, part: Part, facts: Facts) -> dict[str, Any]:
        if isinstance(part, BlobRef) and self._takes(part, facts):
            data = base64.b64encode(await self._blobs.get_blob(part.digest)).decode()
            return {"inlineData": {"mimeType": part.media_type, "data": data}}
        return {"text": named(part) if isinstance(part, BlobRef) else words_of((part,))}


def _content(side: str, parts: Sequence[bytes]) -> bytes:
    return b'{"role":"%s","parts":[%s]}' % (side.encode(), b",".join(parts))


def _settings(model: str, limits: Parameters, facts: Facts) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if limits.max_output_tokens is not None:
        settings["maxOutputTokens"] = limits.max_output_tokens
    if limits.temperature is not None:
        settings["temperature"] = limits.temperature
    if limits.schema is not None:
        settings["responseMimeType"] = "application/json"
        settings["responseJsonSchema"] = limits.schema
    thinking: dict[str, Any] = {"includeThoughts": True} if facts.reasoning else {}
    if limits.effort is not None and model.startswith("gemini-3"):
        thinking["thinkingLevel"] = _LEVELS[limits.effort]
    elif limits.effort is not None:
        thinking["thinkingBudget"] = _BUDGETS[limits.effort]
    return {**settings, "thinkingConfig": thinking} if thinking else settings
