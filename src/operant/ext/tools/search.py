"""Find text in files of the workspace."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec

from operant.ext.tools.files import UNLISTED
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.workspace import Workspaces
from operant.kit import proc
from operant.kit.beneath import FileError
from operant.kit.seek import BAD_REQUEST, Request
from operant.sdk import CallContext, FunctionTool, ToolResult, failed, tool

_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
_MOST_MATCHES = 200
_MOST_FILES_BYTES = 2_000_000
_MEMORY_BYTES = 200_000


def search_tools(settings: ToolsSettings, workspaces: Workspaces) -> tuple[FunctionTool, ...]:
    """Make the tool `search_files`."""

    @tool(effect="read", timeout_s=settings.search_timeout_s + 5)
    async def search_files(
        pattern: Annotated[str, "Python regular expression"],
        call: CallContext,
        path: str = ".",
        glob: Annotated[str, "such as *.py or src/**/*.ts"] = "",
    ) -> str | ToolResult:
        """Find lines in files; gives path:line: text."""
        try:
            root = workspaces.root(call.agent)
        except FileError as error:
            return failed(str(error))
        request = Request(
            root=root,
            roots=dict(workspaces.roots),
            path=path,
            pattern=pattern,
            glob=glob,
            skip=sorted(UNLISTED),
            most_matches=_MOST_MATCHES,
            largest_file=_MOST_FILES_BYTES,
        )
        return await found(request, settings.search_timeout_s)

    return (search_files,)


async def found(request: Request, timeout_s: float) -> str | ToolResult:
    """Search in a process of its own: an expression that never ends holds up nothing and is ended in time."""
    finished = await proc.run(
        [sys.executable, "-I", "-m", "operant.kit.seek", msgspec.json.encode(request).decode()],
        cwd="/",
        env=_ENVIRONMENT,
        timeout_s=timeout_s,
        limits=proc.Limits(memory_bytes=_MEMORY_BYTES, spool_bytes=0),
    )
    try:
        text = finished.output.head.rstrip("\n")
    finally:
        finished.output.close()
    if finished.timed_out:
        told = f"The search took longer than {timeout_s:g} s. Use a simpler pattern, or a narrower path or glob."
        return ToolResult(parts=failed(f"{text}\n{told}".lstrip("\n")).parts, outcome="timeout")
    if finished.code == BAD_REQUEST:
        return failed(text)
    if finished.code != 0:
        return failed(f"The search failed: {text.rpartition(chr(10))[2]}")
    return text
