"""The Anthropic messages protocol as bytes: requests that only ever grow at their end.

A request is `{"model", "tools", "system", "messages", ...limits}`. The service keeps a prefix where a marker stands,
and looks for kept ones at a marker and at most 20 blocks before it. Markers at the end of the tools and of the system
prompt never move. The third one is at the end of the last message: it moves with every request, but is the last thing
in `messages`, so that all before it stays as it was. The next request finds what it kept by looking back; only where
more blocks than that have come since (many parallel calls) does a fourth marker stand where the last request ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec

from operant.ext.providers.attached import PDF, Attached, has_files
from operant.ext.providers.claude import Limits
from operant.ext.providers.dialect import Encoded, id_for, words_of
from operant.ext.providers.foreign import arguments_of, distinct, fit_name, own
from operant.ext.providers.schemas import parameters_of
from operant.sdk import BlobRef, Blobs, Facts, Message, ModelRequest, Part, Reasoning, ToolCall, ToolSpec

DIALECT = "anthropic"
REDACTED = "redacted:"
SIGNED = "signed:"
_NEAR = 15
"""How many new blocks a look back is trusted with; the service's own limit is 20, a result's pieces perhaps counted."""
_MARK = b',"cache_control":{"type":"ephemeral"}}'
_NEXT = b",\n"
"""Stands between blocks; blocks themselves have no line break, so that they can be counted."""

_json = msgspec.json.Encoder(order="deterministic")


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
        if request.system.strip():
            pieces += [b',"system":[', _marked(_json.encode(_words(request.system))), b"]"]
        turns = await self._turns(distinct(request.messages), facts)
        thought = self._thought(request.messages)
        limits = Limits(request.model, facts, thought=thought).fields(request.parameters)
        pieces += [b',"messages":[', _placed(turns), b"],", _json.encode(limits)[1:-1], b',"stream":true}']
        return b"".join(pieces)

    def _tool_list(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools and self._tools[0] != tools:
            shapes = [
                _json.encode(
                    {
                        "name": fit_name(tool.name),
                        "description": tool.description,
                        "input_schema": parameters_of(tool.schema),
                    }
                )
                for tool in tools
            ]
            shapes[-1] = _marked(shapes[-1])
            self._tools = (tools, b"[" + _NEXT.join(shapes) + b"]")
        return self._tools[1]

    async def _turns(self, messages: Sequence[Message], facts: Facts) -> list[tuple[str, bytes]]:
        """Return who spoke and the blocks of it. What tools brought stands before what the user said meanwhile."""
        turns: list[tuple[str, bytes]] = []
        for role, run in groupby(messages, lambda one: "assistant" if one.role == "assistant" else "user"):
            ordered = sorted(run, key=lambda one: one.role != "tool")
            blocks = [await self._blocks(message, facts) for message in ordered]
            if said := _NEXT.join(one for one in blocks if one):
                turns.append((role, said))
        return _framed(turns)

    async def _blocks(self, message: Message, facts: Facts) -> bytes:
        encoded = self._encoded[facts.files]
        return await encoded.of(message, facts.images, partial(self._encode, facts=facts))

    async def _encode(self, message: Message, facts: Facts) -> bytes:
        shapes = await self._shapes(message, facts)
        return _NEXT.join(_json.encode(shape) for shape in shapes)

    async def _shapes(self, message: Message, facts: Facts) -> list[dict[str, Any]]:
        if message.role == "assistant":
            return self._said(message.parts)
        if message.role == "user":
            return await self._attached.pieces(message.parts, facts) or [_words("[no words]")]
        content: Any = words_of(message.parts)
        if has_files(message.parts, facts):
            content = await self._attached.pieces(message.parts, facts)
        return [{"type": "tool_result", "tool_use_id": id_for(message.call_id), "content": content}]

    def _said(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """Return a reply as it was given, without the thinking of others, and without thinking that led to nothing."""
        shapes = [shape for part in parts if (shape := self._spoken(part))]
        while shapes and shapes[-1]["type"] in ("thinking", "redacted_thinking"):
            shapes.pop()
        return shapes

    def _spoken(self, part: Part) -> dict[str, Any] | None:
        if isinstance(part, Reasoning):
            return self._thinking(part)
        if isinstance(part, ToolCall):
            name, arguments = fit_name(part.name), arguments_of(part)
            return {"type": "tool_use", "id": id_for(part.id), "name": name, "input": arguments}
        words = words_of((part,))
        return _words(words) if words.strip() else None

    def _thinking(self, part: Reasoning) -> dict[str, Any] | None:
        payload = own(DIALECT, self._provider, part.opaque)
        if payload.startswith(REDACTED):
            return {"type": "redacted_thinking", "data": payload.removeprefix(REDACTED)}
        if payload.startswith(SIGNED):
            return {"type": "thinking", "thinking": part.text, "signature": payload.removeprefix(SIGNED)}
        return None

    def _thought(self, messages: Sequence[Message]) -> bool:
        """Tell whether the model may go on thinking: with a budget, a reply with calls must begin with our thinking."""
        last = next((one for one in reversed(messages) if one.role == "assistant"), None)
        if last is None or messages[-1].role == "assistant":
            return True
        shapes = self._said(last.parts)
        calls = any(shape["type"] == "tool_use" for shape in shapes)
        return not calls or shapes[0]["type"] in ("thinking", "redacted_thinking")


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _file(ref: BlobRef, data: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": ref.media_type, "data": data}
    if ref.media_type == PDF:
        return {"type": "document", "source": source, "title": ref.name or "document.pdf"}
    return {"type": "image", "source": source}


def _marked(block: bytes) -> bytes:
    """Put a marker at the end of the last one of some blocks."""
    return block[:-1] + _MARK


def _framed(turns: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Let the user have the first word and the last, as the service wants it."""
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", _json.encode(_words("[the conversation goes on]"))))
    if turns[-1][0] != "user":
        turns.append(("user", _json.encode(_words("[go on]"))))
    return turns


def _placed(turns: list[tuple[str, bytes]]) -> bytes:
    """Return the messages with their markers."""
    ends = {len(turns) - 1}
    before = len(turns) - 3
    if before >= 0 and sum(blocks.count(_NEXT) + 1 for _, blocks in turns[before + 1 :]) > _NEAR:
        ends.add(before)
    return _NEXT.join(
        b'{"role":"%s","content":[%s]}' % (role.encode(), _marked(blocks) if at in ends else blocks)
        for at, (role, blocks) in enumerate(turns)
    )
