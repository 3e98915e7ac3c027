"""Send files of the workspace to the person."""

from __future__ import annotations

import mimetypes
from typing import Annotated

from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.texts import read_named
from operant.ext.tools.workspace import Workspaces
from operant.kit.beneath import FileError
from operant.sdk import (
    CallContext,
    FunctionTool,
    Host,
    KvGet,
    KvSet,
    MessageSend,
    NotFound,
    Part,
    Text,
    ToolResult,
    failed,
    tool,
)

_NAMESPACE = "files"
_DAY_S = 86_400.0
_CAPTION_CHARS = 1000


def send_tools(host: Host, settings: ToolsSettings, workspaces: Workspaces) -> tuple[FunctionTool, ...]:
    """Make the tool `send_file`."""

    @tool(effect="external", timeout_s=60, deferred=True)
    async def send_file(path: str, call: CallContext, caption: Annotated[str, "words below it"] = "") -> ToolResult:
        """Send the person of this conversation a file of the workspace."""
        sent = f"sent:{call.key}"
        if call.repeated and await host.call(KvGet(namespace=_NAMESPACE, key=sent)):
            return ToolResult(parts=(Text(text=f"{path} is on its way (since before a restart)."),))
        if len(caption) > _CAPTION_CHARS:
            return failed(f"A caption has at most {_CAPTION_CHARS:,} characters; nothing was sent.")
        try:
            name, data = await workspaces.use(
                call.agent, lambda files: read_named(files, path, settings.max_sent_bytes)
            )
        except FileError as error:
            return failed(f"{error} Nothing was sent.")
        if not data:
            return failed(f"{name} is empty; nothing was sent.")
        last = name.rpartition("/")[2]
        media_type = mimetypes.guess_type(last, strict=False)[0] or "application/octet-stream"
        blob = await host.blobs.put_blob(data, media_type, last)
        parts: tuple[Part, ...] = (blob, Text(text=caption)) if caption else (blob,)
        try:
            queued = await host.call(MessageSend(session=call.session, parts=parts))
        except NotFound as error:
            return failed(f"{error.line()} Nothing was sent.")
        await host.call(KvSet(namespace=_NAMESPACE, key=sent, value=queued.outbox_id, ttl_s=_DAY_S))
        return ToolResult(
            parts=(Text(text=f"{name} is on its way: {media_type}, {len(data):,} bytes."),), artifacts=(blob,)
        )

    return (send_file,)
