"""Look at files of the workspace and put new ones there."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable
from typing import Annotated, NamedTuple

from operant.ext.tools.seen import Seen, digest_of
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.workspace import Workspaces
from operant.kit.beneath import Absent, Beneath, Entry, FileError, Version
from operant.sdk import CallContext, FunctionTool, Host, ToolResult, failed, tool

DEFAULT_LINES = 2000
UNLISTED = frozenset({".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
_MOST_ENTRIES = 500


class Writer:
    """Write whole files, but not over what the session has not seen change."""

    def __init__(self, seen: Seen, workspaces: Workspaces, largest: int) -> None:
        self._seen = seen
        self._workspaces = workspaces
        self._largest = largest

    async def write(self, call: CallContext, path: str, content: str) -> str | ToolResult:
        """Write a file; the same call again finds it written."""
        data = content.encode("utf-8", "replace")
        try:
            name, there = await self._workspaces.use(call.agent, lambda files: self._there(files, path))
            known = await self._seen.digest(call.session, name)
            if there and known and there.digest not in (known, digest_of(data)):
                return failed(f"{name} changed since you last saw it. Read it again first; nothing was written.")
            expect = there.version if there else None
            await self._workspaces.use(call.agent, lambda files: files.write_atomic(path, data, expect=expect))
        except FileError as error:
            return failed(str(error))
        await self._seen.remember(call.session, name, data)
        return f"{'Wrote' if there else 'Created'} {name}: {_lines(content)}, {len(data):,} bytes."

    def _there(self, files: Beneath, path: str) -> tuple[str, State | None]:
        """Return the one name of a file, and the state of what is there."""
        try:
            name, data, version = read_version(files, path, self._largest)
        except Absent:
            return files.name_of(path), None
        return name, State(digest_of(data), version)


class State(NamedTuple):
    """What a file says and which state of it that is."""

    digest: str
    version: Version


def file_tools(host: Host, settings: ToolsSettings, workspaces: Workspaces) -> tuple[FunctionTool, ...]:
    """Make the tools `read_file`, `write_file` and `list_files`."""
    seen = Seen(host)
    largest = settings.max_file_bytes
    writer = Writer(seen, workspaces, largest)

    @tool(effect="read", timeout_s=30)
    async def read_file(
        path: str,
        call: CallContext,
        offset: Annotated[int, "first line, from 1"] = 1,
        limit: Annotated[int, "lines"] = DEFAULT_LINES,
    ) -> str | ToolResult:
        """Read a text file. Paths are relative to the workspace."""
        try:
            name, data = await workspaces.use(call.agent, lambda files: read_named(files, path, largest))
        except FileError as error:
            return failed(str(error))
        await seen.remember(call.session, name, data)
        if is_binary(data):
            return failed(f"{name} is not text ({len(data):,} bytes).")
        return excerpt(name, decoded(data), max(offset, 1), max(limit, 1))

    @tool(effect="idempotent", timeout_s=60)
    async def write_file(path: str, content: str, call: CallContext) -> str | ToolResult:
        """Write a whole file, and the directories above it."""
        return await writer.write(call, path, content)

    @tool(effect="read", timeout_s=30)
    async def list_files(call: CallContext, path: str = ".", depth: Annotated[int, "levels"] = 2) -> str | ToolResult:
        """List files and directories."""

        def listed(files: Beneath) -> list[Entry]:
            tree = files.tree(path, min(max(depth, 1), 32), UNLISTED)
            return list(itertools.islice(tree, _MOST_ENTRIES + 1))

        try:
            entries = await workspaces.use(call.agent, listed)
        except FileError as error:
            return failed(str(error))
        return listing(entries)

    return read_file, write_file, list_files


def read_named(files: Beneath, path: str, limit: int) -> tuple[str, bytes]:
    """Return the one name of a file and its bytes."""
    return files.name_of(path), files.read_bytes(path, limit)


def read_version(files: Beneath, path: str, limit: int) -> tuple[str, bytes, Version]:
    """Return the one name of a file, its bytes, and which state of it they are."""
    return files.name_of(path), *files.read(path, limit)


def is_binary(data: bytes) -> bool:
    """Tell whether bytes are something else than text."""
    return b"\0" in data[:8192] and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decoded(data: bytes) -> str:
    """Return the text of a file; what is not UTF-8 (or UTF-16 that says so) is replaced."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8", "replace")


def excerpt(name: str, text: str, offset: int, limit: int) -> str:
    """Return lines of a text, with a line on top that says which where it is not all of it."""
    lines = text.splitlines(keepends=True)
    chosen = lines[offset - 1 : offset - 1 + limit]
    if len(chosen) == len(lines):
        return text or f"[{name} is empty]"
    if not chosen:
        return f"[{name} has {len(lines):,} lines; there is no line {offset:,}]"
    return f"[{name}: lines {offset:,} to {offset + len(chosen) - 1:,} of {len(lines):,}]\n{''.join(chosen)}"


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
