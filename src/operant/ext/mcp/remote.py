"""A tool of a server as the gate sees it, and what its answers become."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import msgspec

from operant.ext.mcp.link import Link
from operant.ext.mcp.seen import Seen, name_of
from operant.kit.text import plain, shorten
from operant.sdk import (
    BlobRef,
    Blobs,
    CallContext,
    Effect,
    Invalid,
    Json,
    Output,
    Part,
    Text,
    ToolResult,
    ToolSpec,
    failed,
)

if TYPE_CHECKING:
    from mcp import MCPError

OUTSIDE = "outside"
MOST_TEXT = 1_000_000
MOST_BLOB = 16 * 1024 * 1024
_CLOSED = -32000


class RemoteTool:
    """One tool of one server."""

    def __init__(self, link: Link, seen: Seen, blobs: Blobs, *, deferred: bool) -> None:
        self._link = link
        self._seen = seen
        self._blobs = blobs
        server = link.server
        self.spec = ToolSpec(
            name=name_of(server.name, seen.tool),
            description=f"[from the MCP server {server.name}] {seen.description}".rstrip(),
            schema=seen.schema,
            effect=_effect(seen, trusted=server.settings.trusted),
            timeout_s=server.settings.timeout + 20,
            deferred=deferred,
        )

    def check(self, arguments: Json) -> Json:
        """Return the arguments; the server checks them by its own schema. Raises `Invalid` for one that is missing."""
        missing = [name for name in self._seen.schema.get("required", ()) if name not in arguments]
        if missing:
            raise Invalid(f"{self.spec.name} needs {', '.join(map(str, missing))}.", "Call it again with all of them.")
        return arguments

    async def run(self, call: CallContext, arguments: Json, output: Output) -> ToolResult:
        """Call the tool where it is."""
        from mcp import MCPError

        standing = self._link.standing_of(self._seen.tool)
        if standing != "offered":
            return failed(f"{self.spec.name} is {standing}: the owner must approve it first.")
        client = await self._link.client()
        try:
            said = await client.call_tool(self._seen.tool, arguments, self._link.server.settings.timeout)
        except MCPError as error:
            return self._refused(error)
        parts = await parts_of(said.content, self._blobs)
        if not parts and said.structured_content is not None:
            parts = (Text(text=_shown(msgspec.json.encode(said.structured_content).decode())),)
        return ToolResult(parts=parts, outcome="error" if said.is_error else "ok", labels=(OUTSIDE,))

    def _refused(self, error: MCPError) -> ToolResult:
        refusal, self._link.access.refusal = self._link.access.refusal, ""
        if error.code == _CLOSED and not refusal:
            self._link.lost()
        said = Text(text=f"{self.spec.name} failed: {refusal or _shown(error.message)}")
        return ToolResult(parts=(said,), outcome="error", labels=(OUTSIDE,))


def _effect(seen: Seen, *, trusted: bool) -> Effect:
    """Believe a server about its tools only when the owner does."""
    if not trusted:
        return "external"
    return "read" if seen.reads else "idempotent" if seen.repeats else "external"


async def parts_of(content: Any, blobs: Blobs) -> tuple[Part, ...]:
    """Make parts of what a server sent: words as they are, pictures, sounds and files as blobs."""
    parts: list[Part] = []
    for one in content:
        if one.type == "text":
            parts.append(Text(text=_shown(one.text)))
        elif one.type in ("image", "audio"):
            parts.append(await _blob(one.data, one.mime_type, one.type, blobs))
        elif one.type == "resource":
            parts.append(await contents_of(one.resource, blobs))
        elif one.type == "resource_link":
            parts.append(Text(text=f"[resource {plain(str(one.uri))[:500]}: {plain(one.name)[:200]}]"))
    return tuple(parts)


async def contents_of(resource: Any, blobs: Blobs) -> Part:
    """Make a part of a resource's contents."""
    text = getattr(resource, "text", None)
    if text is not None:
        return Text(text=_shown(text))
    name = str(resource.uri).rstrip("/").rpartition("/")[2][:100] or "file"
    return await _blob(resource.blob, resource.mime_type or "application/octet-stream", name, blobs)


async def _blob(data: str, kind: str, name: str, blobs: Blobs) -> Text | BlobRef:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(text=f"[{name}: not readable]")
    if len(content) > MOST_BLOB:
        return Text(text=f"[{name}: {len(content):,} bytes are too many]")
    return await blobs.put_blob(content, plain(kind)[:100], plain(name))


def _shown(text: str) -> str:
    return shorten(plain(text), MOST_TEXT, "[cut]")
