"""Unpack archives into a directory of their own."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import msgspec

from operant.ext.tools.changes import UNKNOWN, Changes, FileNote
from operant.ext.tools.reading import ENVIRONMENT, MEMORY_BYTES
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.workspace import Workspaces
from operant.kit import proc
from operant.kit.archives import LARGEST_ENTRY
from operant.kit.beneath import FileError
from operant.kit.unpack import REFUSED, Request
from operant.sdk import CallContext, FunctionTool, ToolResult, failed, tool

_NAME = "extract_archive"
_TIMEOUT_S = 240.0
_CPU_S = 120
_ANSWER_BYTES = 16_000_000


class CannotUnpack(Exception):
    """Say in one sentence why nothing was unpacked."""


def extract_tools(settings: ToolsSettings, workspaces: Workspaces, changes: Changes) -> tuple[FunctionTool, ...]:
    """Make the tool `extract_archive`."""

    @tool(effect="external", timeout_s=2 * _TIMEOUT_S + 10, deferred=True)
    async def extract_archive(
        path: str, into: Annotated[str, "a new or empty directory"], call: CallContext
    ) -> str | ToolResult:
        """Unpack a zip or tar archive, after all of it was judged; links, devices and bombs are refused."""
        try:
            request = Request(
                root=workspaces.root(call.agent),
                roots=dict(workspaces.roots),
                protected=list(workspaces.protected),
                path=path,
                into=into,
                largest=settings.max_document_bytes,
                dry_run=True,
            )
            return await _extracted(changes, call, request)
        except (FileError, CannotUnpack) as error:
            return failed(f"{path}: {error}")

    return (extract_archive,)


async def _extracted(changes: Changes, call: CallContext, request: Request) -> str:
    """Note what will be there, unpack it, and note what it says. Raises `CannotUnpack` and `FileError`."""
    names = await _unpacked(request)
    note = changes.new_note(call, _NAME, tuple(FileNote(name=name, after=UNKNOWN) for name in names))
    await changes.note(call, note)
    try:
        digests = await _unpacked(replace(request, dry_run=False))
    except CannotUnpack:
        await changes.forget(call, note)
        raise
    written = tuple(FileNote(name=name, after=digest) for name, digest in digests.items())
    await changes.note(call, msgspec.structs.replace(note, files=written))
    return f"Unpacked {len(digests):,} files into {request.into}."


async def _unpacked(request: Request) -> dict[str, str]:
    """Run the program that unpacks. Raises `CannotUnpack`."""
    limits = proc.Limits(
        memory_bytes=_ANSWER_BYTES,
        spool_bytes=0,
        rlimits=proc.rlimits(memory_bytes=MEMORY_BYTES, cpu_s=_CPU_S, file_bytes=LARGEST_ENTRY),
    )
    argv = [sys.executable, "-I", "-m", "operant.kit.unpack", request.encode()]
    finished = await proc.run(argv, cwd="/", env=ENVIRONMENT, timeout_s=_TIMEOUT_S, limits=limits)
    try:
        said = finished.output.head
    finally:
        finished.output.close()
    if finished.timed_out:
        raise CannotUnpack(f"Unpacking took longer than {_TIMEOUT_S:g} s; what is in {request.into} is not all of it.")
    if finished.code == REFUSED:
        raise CannotUnpack(said)
    try:
        return msgspec.json.decode(said, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise CannotUnpack("It could not be unpacked; it is damaged, or made to be hard to unpack.") from error
