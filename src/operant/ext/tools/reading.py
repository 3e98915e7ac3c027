"""Read files of any kind: text here, everything else in a process of its own."""

from __future__ import annotations

import sys
from typing import NamedTuple

from operant.ext.tools.seen import Seen
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.texts import decoded, excerpt, is_binary
from operant.ext.tools.workspace import Workspaces
from operant.kit import proc
from operant.kit.beneath import Beneath, FileError, Unfit
from operant.kit.documents.request import (
    BODY_BYTES,
    HEAD_BYTES,
    Answer,
    CannotRead,
    Request,
    kind_of,
    read_answer,
    said_kind,
)
from operant.sdk import CallContext, Host, Text, ToolResult, failed

TIMEOUT_S = 30.0
MEMORY_BYTES = 1 << 30
_CPU_S = 30
_PAGES = 20
ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}


class Opened(NamedTuple):
    """A file as far as it was read here: its one name, its kind (empty: text, or unknown), size and bytes."""

    name: str
    kind: str
    size: int
    data: bytes


class Reader:
    """Read files for agents."""

    def __init__(self, host: Host, settings: ToolsSettings, workspaces: Workspaces) -> None:
        self._blobs = host.blobs
        self._seen = Seen(host)
        self._settings = settings
        self._workspaces = workspaces

    async def read(self, call: CallContext, path: str, offset: int, limit: int) -> str | ToolResult:
        """Return what a file says, or a picture; the session has seen it then."""
        try:
            opened = await self._workspaces.use(call.agent, lambda files: self._opened(files, path))
        except FileError as error:
            return failed(str(error))
        if opened.data or not opened.size:
            await self._seen.remember(call.session, opened.name, opened.data)
        if opened.kind:
            return await self._foreign(call, opened, offset, limit)
        if is_binary(opened.data):
            what = said_kind(opened.data) or "not text"
            return failed(f"{opened.name} is {what} ({opened.size:,} bytes).")
        return excerpt(opened.name, decoded(opened.data), offset, limit)

    def _opened(self, files: Beneath, path: str) -> Opened:
        """Read a file whole, or only know its kind where it is large and another process reads it."""
        name = files.name_of(path)
        with files.open_read(path) as file:
            head = file.read(HEAD_BYTES)
        kind = kind_of(name, head)
        size = files.stat(path).size
        if not kind or size <= self._settings.max_file_bytes:
            data, version = files.read(path, self._settings.max_file_bytes)
            return Opened(name, kind, version.size, data)
        if size > self._settings.max_document_bytes:
            most = self._settings.max_document_bytes
            raise Unfit(f"{name!r} is too large: {size:,} bytes, and {most:,} are the most that is read.")
        return Opened(name, kind, size, b"")

    async def _foreign(self, call: CallContext, opened: Opened, offset: int, limit: int) -> str | ToolResult:
        request = Request(
            root=self._workspaces.root(call.agent),
            roots=dict(self._workspaces.roots),
            path=opened.name,
            kind=opened.kind,
            offset=offset,
            limit=min(limit, _PAGES) if opened.kind == "pdf" else limit,
            largest=self._settings.max_document_bytes,
        )
        try:
            answer = await answered(request)
        except CannotRead as error:
            return failed(f"{opened.name}: {error}")
        if answer.kind == "image":
            return await self._picture(opened, answer)
        text = answer.body.decode("utf-8", "replace")
        if answer.kind == "pages":
            return paged(opened.name, text, answer, request.limit)
        return excerpt(opened.name, text, offset, limit)

    async def _picture(self, opened: Opened, answer: Answer) -> ToolResult:
        blob = await self._blobs.put_blob(answer.body, answer.media_type, opened.name.rpartition("/")[2])
        return ToolResult(parts=(Text(text=f"[{opened.name}: {answer.note}]"), blob))


async def answered(request: Request) -> Answer:
    """Have a document read by a process that may use so much memory and time. Raises `CannotRead`."""
    limits = proc.Limits(
        memory_bytes=BODY_BYTES + 4096, spool_bytes=0, rlimits=proc.rlimits(memory_bytes=MEMORY_BYTES, cpu_s=_CPU_S)
    )
    argv = [sys.executable, "-I", "-m", "operant.kit.documents", request.encode()]
    finished = await proc.run(argv, cwd="/", env=ENVIRONMENT, timeout_s=TIMEOUT_S, limits=limits)
    try:
        data = finished.output.whole()
        cut = finished.output.cut
    finally:
        finished.output.close()
    if finished.timed_out:
        raise CannotRead(f"Reading it took longer than {TIMEOUT_S:g} s.")
    if cut:
        raise CannotRead("It has more text than can be shown; read fewer pages.")
    answer = read_answer(data)
    if answer.kind == "refused":
        raise CannotRead(answer.body.decode("utf-8", "replace"))
    if finished.code != 0:
        raise CannotRead("It could not be read: it is damaged, encrypted, or has no such pages.")
    return answer


def paged(name: str, text: str, answer: Answer, limit: int) -> str | ToolResult:
    """Return pages with their numbers, and a line on top that says which where they are not all."""
    pages = text.removesuffix("\f").split("\f") if text else []
    first, total = answer.first, answer.total
    if not pages and total:
        return failed(f"{name} has {total:,} pages; there is no page {first:,}.")
    if not any(page.strip() for page in pages):
        return failed(f"{name} has no text on these pages; they are pictures, such as scans.")
    last = first + len(pages) - 1
    of = f" of {total:,}" if total else " or more" if len(pages) == limit else ""
    whole = first == 1 and last == total
    head = f"[{name}: {total:,} pages]" if whole else f"[{name}: pages {first:,} to {last:,}{of}]"
    shown = [f"--- page {number}\n{page.strip()}" for number, page in enumerate(pages, first)]
    return "\n".join((head, *shown))
