"""The OpenAI responses protocol as bytes: requests that only ever grow at their end.

Nothing is kept at the provider (`store` is false): reasoning comes encrypted and goes back as it came, before what
followed it. A request is `{"model", "tools", "instructions", "input", ...limits}`, so that the next one of a session is
the last one plus a suffix.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from operant.ext.providers.attached import PDF, Attached, has_files
from operant.ext.providers.dialect import Encoded, id_for, words_of
from operant.ext.providers.foreign import distinct, fit_name, marked, own
from operant.ext.providers.schemas import is_strict, parameters_of
from operant.sdk import BlobRef, Blobs, Effort, Facts, Message, ModelRequest, Part, Reasoning, ToolCall, ToolSpec

DIALECT = "responses"
_LEAST_OUTPUT = 16
_THINKS = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9]|codex)")
_CANNOT_THINK = re.compile(r"(?:^|/)(?:chatgpt-4|gpt-[34])")
"""Models of OpenAI that refuse to be asked for encrypted reasoning."""

_json = msgspec.json.Encoder(order="deterministic")


class Kept(msgspec.Struct, omit_defaults=True):
    """What a reply had that is not ours to read: a thought, or the phase of the message that follows."""

    id: str = ""
    encrypted_content: str = ""
    summary: list[str] = []
    """Only where the text is not the one piece of it."""
    content: list[str] = []
    phase: str = ""

    def mark(self, provider: str) -> str:
        """Return it as a part keeps it."""
        return marked(DIALECT, provider, msgspec.json.encode(self).decode())


class Requests:
    """Encode requests; what was encoded before is not encoded again."""

    def __init__(self, blobs: Blobs, provider: str) -> None:
        self._provider = provider
        self._attached = Attached(blobs, _words, _file)
        self._encoded: dict[bool, Encoded] = {False: Encoded(), True: Encoded()}
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return the request's body."""
        pieces = [b'{"model":', _json.encode(request.model)]
        if request.tools:
            pieces += [b',"tools":', self._tool_list(request.tools)]
        if request.system:
            pieces += [b',"instructions":', _json.encode(request.system)]
        items = [await self._items(message, facts) for message in distinct(request.messages)]
        pieces += [b',"input":[', b",".join(one for one in items if one), b"],"]
        return b"".join([*pieces, _json.encode(_limits(request, facts))[1:-1], b',"store":false,"stream":true}'])

    def _tool_list(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools and self._tools[0] != tools:
            shapes = [
                {
                    "type": "function",
                    "name": fit_name(tool.name),
                    "description": tool.description,
                    "parameters": parameters_of(tool.schema),
                    "strict": False,
                }
                for tool in tools
            ]
            self._tools = (tools, _json.encode(shapes))
        return self._tools[1]

    async def _items(self, message: Message, facts: Facts) -> bytes:
        encoded = self._encoded[facts.files]
        return await encoded.of(message, facts.images, partial(self._encode, facts=facts))

    async def _encode(self, message: Message, facts: Facts) -> bytes:
        if message.role == "assistant":
            return _json.encode(self._said(message.parts))[1:-1]
        if message.role == "user":
            content = await self._attached.pieces(message.parts, facts) or [_words("[no words]")]
            return _json.encode({"type": "message", "role": "user", "content": content})
        output: Any = words_of(message.parts)
        if has_files(message.parts, facts):
            output = await self._attached.pieces(message.parts, facts)
        return _json.encode({"type": "function_call_output", "call_id": id_for(message.call_id), "output": output})

    def _said(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """Return a reply as it was given, without the thinking of others, and without thinking that led to nothing."""
        items: list[dict[str, Any]] = []
        phase = ""
        for part in parts:
            if isinstance(part, Reasoning):
                kept = self._kept(part)
                phase = kept.phase
                items += _thinking(part, kept)
            elif item := _spoken(part, phase):
                items.append(item)
                phase = ""
        while items and items[-1]["type"] == "reasoning":
            items.pop()
        return items

    def _kept(self, part: Reasoning) -> Kept:
        payload = own(DIALECT, self._provider, part.opaque)
        try:
            return msgspec.json.decode(payload, type=Kept) if payload else Kept()
        except msgspec.MsgspecError:
            return Kept()  # written by a program that kept it in another way


def _words(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _file(ref: BlobRef, data: str) -> dict[str, Any]:
    url = f"data:{ref.media_type};base64,{data}"
    if ref.media_type == PDF:
        return {"type": "input_file", "filename": ref.name or "document.pdf", "file_data": url}
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _thinking(part: Reasoning, kept: Kept) -> list[dict[str, Any]]:
    """Return a thought as an item; one without anything to recognise it by is nothing that a provider knows."""
    if not kept.encrypted_content and not kept.content:
        return []
    summary = kept.summary or ([part.text] if part.text and not kept.content else [])
    item: dict[str, Any] = {"type": "reasoning", "summary": [{"type": "summary_text", "text": one} for one in summary]}
    if kept.id:
        item["id"] = kept.id
    if kept.encrypted_content:
        item["encrypted_content"] = kept.encrypted_content
    if kept.content:
        item["content"] = [{"type": "reasoning_text", "text": one} for one in kept.content]
    return [item]


def _spoken(part: Part, phase: str) -> dict[str, Any] | None:
    if isinstance(part, ToolCall):
        name, arguments = fit_name(part.name), part.arguments or "{}"
        return {"type": "function_call", "call_id": id_for(part.id), "name": name, "arguments": arguments}
    words = words_of((part,))
    if not words:
        return None
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}
    return {**item, "phase": phase} if phase else item


def _limits(request: ModelRequest, facts: Facts) -> dict[str, Any]:
    """Return what may differ from request to request; it stands behind the input."""
    asked, model = request.parameters, request.model.casefold()
    thinks = facts.reasoning or bool(_THINKS.search(model))
    can_think = thinks or not _CANNOT_THINK.search(model)
    fields: dict[str, Any] = {}
    if asked.max_output_tokens is not None:
        fields["max_output_tokens"] = max(asked.max_output_tokens, _LEAST_OUTPUT)
    if asked.temperature is not None and not thinks:
        fields["temperature"] = asked.temperature
    if asked.effort is not None and can_think:
        fields["reasoning"] = _effort(asked.effort, model)
    if asked.schema is not None:
        answer = {"name": "answer", "schema": asked.schema, "strict": is_strict(asked.schema)}
        fields["text"] = {"format": {"type": "json_schema", **answer}}
    if can_think:
        fields["include"] = ["reasoning.encrypted_content"]
    if request.session:
        # A session's key may name a person's chat: the provider needs only to see that it is the same.
        fields["prompt_cache_key"] = hashlib.sha256(request.session.encode()).hexdigest()[:32]
    return fields


def _effort(effort: Effort, model: str) -> dict[str, Any]:
    """Return how long to think; the first models that think cannot do without."""
    if effort != "none":
        return {"effort": effort, "summary": "auto"}
    if re.search(r"(?:^|/)o\d", model):
        return {"effort": "low"}
    return {"effort": "minimal" if re.search(r"(?:^|/)gpt-5(?![.\d])", model) else "none"}
