"""Change parts of files: exactly what was asked, or nothing."""

from __future__ import annotations

import difflib
from typing import Annotated

from msgspec import Meta

from operant.ext.tools.changes import CannotChange, Changes, Draft, made
from operant.ext.tools.texts import is_binary
from operant.sdk import CallContext, FunctionTool, Record, ToolResult, failed, tool

_DIFF_LINES = 60
_SHOWN_FILES = 20


class Replacement(Record):
    """What to find in a file and what to put there."""

    path: str
    old: Annotated[str, Meta(description="exact text, found once")]
    new: str
    all: bool = False


def edit_tools(changes: Changes) -> tuple[FunctionTool, ...]:
    """Make the tools `edit_file` and `edit_files`."""

    @tool(effect="idempotent", timeout_s=60)
    async def edit_file(
        path: str,
        old: Annotated[str, "exact text, found once"],
        new: str,
        call: CallContext,
        all: Annotated[bool, "replace every occurrence"] = False,  # noqa: A002 - the name that the model uses
    ) -> ToolResult:
        """Replace text in a file."""
        edit = Replacement(path=path, old=old, new=new, all=all)
        return await made(changes, call, "edit_file", lambda draft: edited(draft, (edit,)))

    @tool(effect="idempotent", timeout_s=120, deferred=True)
    async def edit_files(
        edits: Annotated[tuple[Replacement, ...], "made in this order"], call: CallContext
    ) -> ToolResult:
        """Make several replacements in one or more files: all of them, or nothing."""
        if not edits:
            return failed("There are no edits.")
        return await made(changes, call, "edit_files", lambda draft: edited(draft, edits))

    return edit_file, edit_files


async def edited(draft: Draft, edits: tuple[Replacement, ...]) -> str:
    """Draft replacements, and return what changes. Raises `CannotChange` and `FileError`."""
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    for number, edit in enumerate(edits, 1):
        name, data = await draft.read(edit.path)
        try:
            after[name] = replaced(name, data, edit)
        except CannotChange as error:
            raise error if len(edits) == 1 else CannotChange(f"Edit {number}: {error}") from error
        before.setdefault(name, data)
        draft.put(name, after[name])
    return differences([(name, before[name], after[name]) for name in before])


def replaced(name: str, data: bytes, change: Replacement) -> bytes:
    """Return the bytes of a file with the change made. Raises `CannotChange`.

    Works on bytes, so that nothing but the change changes. `old` with plain line ends fits a file with CRLF.
    """
    if is_binary(data):
        raise CannotChange(f"{name} is not text; nothing was written.")
    if not change.old:
        raise CannotChange("`old` is empty; write_file makes whole files.")
    if change.old == change.new:
        raise CannotChange("`old` and `new` are the same; nothing was written.")
    old, new = change.old.encode("utf-8", "replace"), change.new.encode("utf-8", "replace")
    if old not in data and b"\r\n" in data:
        old, new = _with_crlf(old), _with_crlf(new)
    count = data.count(old)
    if count == 0:
        raise CannotChange(f"{name} does not have this text; nothing was written. It must match to the last space.")
    if count > 1 and not change.all:
        raise CannotChange(
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


def differences(files: list[tuple[str, bytes, bytes]]) -> str:
    """Return small unified diffs of files, as (name, before, after)."""
    shown = [difference(*file) for file in files[:_SHOWN_FILES]]
    if more := files[_SHOWN_FILES:]:
        shown.append(f"[and {len(more)} more files]")
    return "\n".join(shown)


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
