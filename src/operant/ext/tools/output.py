"""Keep every tool's output short and harmless: the whole goes to a blob that can be paged."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec.structs import replace

from operant.kit.text import plain, shorten, whole_characters
from operant.sdk import (
    BlobRef,
    CallContext,
    Damaged,
    FunctionTool,
    Host,
    KvGet,
    KvSet,
    NotFound,
    Part,
    Text,
    ToolAfterInput,
    ToolAfterOutput,
    ToolResult,
    failed,
    text_of,
    tool,
)

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NOTE_CHARS = 120
_NAMESPACE = "outputs"
_KEPT_S = 30 * 86_400.0


class OutputLimit:
    """The hook after every tool."""

    def __init__(self, host: Host) -> None:
        self._blobs = host.blobs
        self._origins = Origins(host)

    async def apply(self, input: ToolAfterInput, output: ToolAfterOutput) -> ToolAfterOutput | None:
        """Replace control characters, and the middle of what is longer than the agent's limit."""
        result = output.result
        parts = tuple(_harmless(part) for part in result.parts)
        text = text_of(parts)
        limit = input.agent.limits.tool_output_chars
        if len(text) > limit:
            blob = await self._blobs.put_blob(text.encode(), "text/plain", f"{input.name}.txt")
            await self._origins.keep(blob, result.labels)
            short = Text(text=shorten(text, limit, paging(blob, blob.size)))
            others = tuple(part for part in parts if not isinstance(part, Text))
            result = replace(result, parts=(short, *others), artifacts=(*result.artifacts, blob))
        elif parts != result.parts:
            result = replace(result, parts=parts)
        else:
            return None
        return ToolAfterOutput(result=result)


def paging(blob: BlobRef, total: int) -> str:
    """Say in one line what was left out and how to read it."""
    kept = "" if blob.size >= total else f", the first {blob.size:,} kept"
    return f"[cut: {total:,} bytes in all{kept}; read_output digest={blob.digest}]"


class Origins:
    """Where the text of an output came from, so that reading on in it does not wash that off."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def keep(self, blob: BlobRef, labels: tuple[str, ...]) -> None:
        """Remember the labels of an output."""
        if labels:
            value = msgspec.json.encode(labels).decode()
            await self._host.call(KvSet(namespace=_NAMESPACE, key=blob.digest, value=value, ttl_s=_KEPT_S))

    async def of(self, digest: str) -> tuple[str, ...]:
        """Return the labels of an output."""
        value = await self._host.call(KvGet(namespace=_NAMESPACE, key=digest))
        return msgspec.json.decode(value, type=tuple[str, ...]) if value else ()


def output_tools(host: Host) -> tuple[FunctionTool, ...]:
    """Make the tool `read_output`."""
    origins = Origins(host)

    @tool(effect="read", timeout_s=30)
    async def read_output(digest: str, call: CallContext, offset: Annotated[int, "in bytes"] = 0) -> str | ToolResult:
        """Read on in an output that was cut."""
        if not _DIGEST.fullmatch(digest):
            return failed("A digest has 64 digits from 0 to f; take it from the line that says what was cut.")
        room = max(call.agent.limits.tool_output_chars - _NOTE_CHARS, 64)
        offset = max(offset, 0)
        try:
            data = await host.blobs.get_blob(digest, offset, room)
        except (NotFound, Damaged) as error:
            return failed(error.line())
        return ToolResult(parts=(Text(text=page(data, offset, room)),), labels=await origins.of(digest))

    return (read_output,)


def page(data: bytes, offset: int, room: int) -> str:
    """Return a piece of an output, with a line that says how to read on."""
    if not data:
        return f"[end: there is nothing at byte {offset:,}]"
    if len(data) < room:
        return data.decode("utf-8", "replace")
    data = whole_characters(data)
    return f"{data.decode('utf-8', 'replace')}\n[more at offset={offset + len(data)}]"


def _harmless(part: Part) -> Part:
    if not isinstance(part, Text):
        return part
    text = plain(part.text)
    return part if text == part.text else Text(text=text)
