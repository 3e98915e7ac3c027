"""Look at files of the workspace and put new ones there."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Annotated

from operant.ext.tools.changes import Changes, Draft, made
from operant.ext.tools.reading import Reader
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.workspace import Workspaces
from operant.kit.beneath import Beneath, Entry, FileError
from operant.kit.seek import fits
from operant.sdk import CallContext, FunctionTool, Host, ToolResult, failed, tool

DEFAULT_LINES = 2000
UNLISTED = frozenset({".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
_MOST_ENTRIES = 500
_DEEPEST = 32


def file_tools(
    host: Host, settings: ToolsSettings, workspaces: Workspaces, changes: Changes
) -> tuple[FunctionTool, ...]:
    """Make the tools `read_file`, `write_file` and `list_files`."""
    reader = Reader(host, settings, workspaces)

    @tool(effect="read", timeout_s=60)
    async def read_file(
        path: str,
        call: CallContext,
        offset: Annotated[int, "first line or page, from 1"] = 1,
        limit: Annotated[int, "lines or pages"] = DEFAULT_LINES,
    ) -> str | ToolResult:
        """Read a file: text, PDF, office, notebook, image, archive. Paths are relative to the workspace."""
        return await reader.read(call, path, max(offset, 1), max(limit, 1))

    @tool(effect="idempotent", timeout_s=60)
    async def write_file(path: str, content: str, call: CallContext) -> ToolResult:
        """Write a whole file, and the directories above it."""
        data = content.encode("utf-8", "replace")

        async def written(draft: Draft) -> str:
            there = await draft.take(path, unless=data)
            draft.put(there.name, data)
            return f"{'Wrote' if there.held else 'Created'} {there.name}: {_lines(content)}, {len(data):,} bytes."

        return await made(changes, call, "write_file", written)

    @tool(effect="read", timeout_s=30)
    async def list_files(
        call: CallContext,
        path: str = ".",
        depth: Annotated[int, "levels"] = 2,
        glob: Annotated[str, "only files like *.py, any depth"] = "",
    ) -> str | ToolResult:
        """List files and directories."""

        def listed(files: Beneath) -> list[Entry]:
            tree = files.tree(path, _DEEPEST if glob else min(max(depth, 1), _DEEPEST), UNLISTED)
            chosen = (entry for entry in tree if entry.kind == "file" and fits(entry.path, glob)) if glob else tree
            return list(itertools.islice(chosen, _MOST_ENTRIES + 1))

        try:
            entries = await workspaces.use(call.agent, listed)
        except FileError as error:
            return failed(str(error))
        return listing(entries)

    return read_file, write_file, list_files


def listing(entries: Iterable[Entry]) -> str:
    """Write entries one a line; directories end in a slash, other things say what they are."""
    marks = {"file": "", "directory": "/", "link": " (link)", "other": " (not a file)"}
    lines = [f"{entry.path}{marks[entry.kind]}" for entry in entries]
    if len(lines) > _MOST_ENTRIES:
        lines[_MOST_ENTRIES:] = [f"[more than {_MOST_ENTRIES} entries; list a directory, or fewer levels]"]
    return "\n".join(lines) or "[empty]"


def _lines(text: str) -> str:
    count = len(text.splitlines())
    return "1 line" if count == 1 else f"{count:,} lines"
