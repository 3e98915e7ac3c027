"""Delete and move files."""

from __future__ import annotations

from operant.ext.tools.changes import CannotChange, Changes, Draft, made
from operant.sdk import CallContext, FunctionTool, ToolResult, tool


def moving_tools(changes: Changes) -> tuple[FunctionTool, ...]:
    """Make the tools `delete_file` and `move_file`."""

    @tool(effect="idempotent", timeout_s=60, deferred=True)
    async def delete_file(path: str, call: CallContext) -> ToolResult:
        """Delete a file; `undo_changes` brings it back."""

        async def deleted(draft: Draft) -> str:
            name, data = await draft.read(path)
            draft.put(name, None)
            return f"Deleted {name}: {len(data):,} bytes."

        return await made(changes, call, "delete_file", deleted)

    @tool(effect="idempotent", timeout_s=60, deferred=True)
    async def move_file(path: str, to: str, call: CallContext) -> ToolResult:
        """Move or rename a file; never over another one."""

        async def moved(draft: Draft) -> str:
            name, data = await draft.read(path)
            target = await draft.take(to)
            if target.after is not None:
                raise CannotChange(f"{target.name} is there already; nothing was moved.")
            draft.put(target.name, data, draft.mode(name))
            draft.put(name, None)
            return f"Moved {name} to {target.name}."

        return await made(changes, call, "move_file", moved)

    return delete_file, move_file
