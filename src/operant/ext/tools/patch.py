"""Apply a unified patch to files: all of it where it says, or nothing."""

from __future__ import annotations

from typing import Annotated

from operant.ext.tools.changes import CannotChange, Changes, Draft, made
from operant.ext.tools.texts import is_binary
from operant.kit.patches import BadPatch, FilePatch, patched, read_patch
from operant.sdk import CallContext, FunctionTool, ToolResult, tool


def patch_tools(changes: Changes) -> tuple[FunctionTool, ...]:
    """Make the tool `apply_patch`."""

    @tool(effect="idempotent", timeout_s=120, deferred=True)
    async def apply_patch(
        patch: Annotated[str, "unified diff; may create, delete and rename files"], call: CallContext
    ) -> ToolResult:
        """Apply a patch to the workspace: all of it, or nothing."""
        return await made(changes, call, "apply_patch", lambda draft: _applied(draft, patch))

    return (apply_patch,)


async def _applied(draft: Draft, patch: str) -> str:
    try:
        return "\n".join([await _apply(draft, file) for file in read_patch(patch)])
    except BadPatch as error:
        raise CannotChange(f"{error} Nothing was written.") from error


async def _apply(draft: Draft, file: FilePatch) -> str:
    """Draft what the patch says of one file, and say it. Raises `BadPatch`, `CannotChange` and `FileError`."""
    before = b""
    name = file.old
    if file.old:
        name, before = await draft.read(file.old)
        if is_binary(before) and file.hunks:
            raise BadPatch(f"{name} is not text.")
    text, where = patched(file.old or file.new, before, file.hunks)
    if not file.new:
        if text:
            raise BadPatch(f"The patch deletes {name}, but the file has more in it than the patch takes away.")
        draft.put(name, None)
        return f"Deleted {name}."
    if file.new == file.old:
        draft.put(name, text)
        return f"Changed {name}{where}."
    target = await draft.take(file.new)
    if target.after is not None:
        raise BadPatch(f"{target.name} is there already, and the patch makes it anew.")
    draft.put(target.name, text, draft.mode(name) if file.old else None)
    if not file.old:
        return f"Created {target.name}."
    draft.put(name, None)
    return f"Renamed {name} to {target.name}{where}."
