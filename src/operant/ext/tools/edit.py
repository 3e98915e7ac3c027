"""Change a part of a file: exactly what was asked, or nothing."""

from __future__ import annotations

import difflib
from typing import Annotated

from operant.ext.tools.files import is_binary, read_version
from operant.ext.tools.seen import Seen, digest_of
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.workspace import Workspaces
from operant.kit.beneath import FileError
from operant.sdk import CallContext, FunctionTool, Host, Record, ToolResult, failed, tool

_DIFF_LINES = 60


class Replacement(Record):
    """What to find and what to put there."""

    old: str
    new: str
    all: bool = False


class CannotEdit(Exception):
    """Say in one sentence why nothing was written."""


class Editor:
    """Edit files of a session that knows them."""

    def __init__(self, seen: Seen, workspaces: Workspaces, largest: int) -> None:
        self._seen = seen
        self._workspaces = workspaces
        self._largest = largest

    async def edit(self, call: CallContext, path: str, change: Replacement) -> str | ToolResult:
        """Replace text in a file, in the state in which this session saw it last."""
        try:
            name, data, version = await self._workspaces.use(
                call.agent, lambda files: read_version(files, path, self._largest)
            )
            if call.repeated and await self._seen.intended(call.key) == digest_of(data):
                await self._seen.remember(call.session, name, data)
                return f"Edited {name} (before a restart)."
            known = await self._seen.digest(call.session, name)
            if known and known != digest_of(data):
                raise CannotEdit(f"{name} changed since you last saw it. Read it again first; nothing was written.")
            edited = replaced(name, data, change)
            await self._seen.intend(call.key, edited)
            await self._workspaces.use(call.agent, lambda files: files.write_atomic(path, edited, expect=version))
        except (FileError, CannotEdit) as error:
            return failed(str(error))
        await self._seen.remember(call.session, name, edited)
        return difference(name, data, edited)


def edit_tools(host: Host, settings: ToolsSettings, workspaces: Workspaces) -> tuple[FunctionTool, ...]:
    """Make the tool `edit_file`."""
    editor = Editor(Seen(host), workspaces, settings.max_file_bytes)

    @tool(effect="idempotent", timeout_s=60)
    async def edit_file(
        path: str,
        old: Annotated[str, "exact text, found once"],
        new: str,
        call: CallContext,
        all: Annotated[bool, "replace every occurrence"] = False,  # noqa: A002 - the name that the model uses
    ) -> str | ToolResult:
        """Replace text in a file."""
        return await editor.edit(call, path, Replacement(old=old, new=new, all=all))

    return (edit_file,)


def replaced(name: str, data: bytes, change: Replacement) -> bytes:
    """Return the bytes of a file with the change made. Raises `CannotEdit`.

    Works on bytes, so that nothing but the change changes. `old` with plain line ends fits a file with CRLF.
    """
    if is_binary(data):
        raise CannotEdit(f"{name} is not text; nothing was written.")
    if not change.old:
        raise CannotEdit("`old` is empty; write_file makes whole files.")
    if change.old == change.new:
        raise CannotEdit("`old` and `new` are the same; nothing was written.")
    old, new = change.old.encode("utf-8", "replace"), change.new.encode("utf-8", "replace")
    if old not in data and b"\r\n" in data:
        old, new = _with_crlf(old), _with_crlf(new)
    count = data.count(old)
    if count == 0:
        raise CannotEdit(f"{name} does not have this text; nothing was written. It must match to the last space.")
    if count > 1 and not change.all:
        raise CannotEdit(
            f"{name} has this text {count} times; nothing was written. Give more lines around it, or all=true."
        )
    return data.replace(old, new)


def difference(name: str, before: bytes, after: bytes) -> str:
    """Return a small unified diff."""
    lines = difflib.unified_diff(
        before.decode("utf-8", "replace").splitlines(), after.decode("utf-8", "replace").splitlines(), lineterm="", n=1
    )
    shown = list(lines)[2:]
    if len(shown) > _DIFF_LINES:
        shown[_DIFF_LINES:] = [f"[{len(shown) - _DIFF_LINES} more lines of the difference]"]
    return "\n".join((f"Edited {name}:", *shown))


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
