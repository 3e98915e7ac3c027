"""Files: those of a session (what was sent, made or kept), and those of an agent's workspace."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Annotated, TypeVar

from aiohttp import web
from msgspec import Meta

from operant.ext.gateway.api import Call, Nothing, Route, read
from operant.ext.gateway.media import sniffed
from operant.ext.gateway.problem import Rejected
from operant.kit.beneath import Absent, Beneath, FileError, Protected
from operant.sdk import (
    AgentGet,
    BlobRef,
    Blobs,
    ContextOpened,
    Denied,
    Event,
    Json,
    MessageQueued,
    MessageReceived,
    ModelReplied,
    Record,
    SessionDispatch,
    SessionHistory,
    ToolEnded,
    allowed,
)

T = TypeVar("T")

SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds that a browser may show; everything else is only ever saved."""
_UPLOAD_S = 300.0
_LARGEST = 1 << 30
_PIECE = 1 << 20


class UploadQuery(Record):
    """What the file is called."""

    name: Annotated[str, Meta(max_length=255)] = ""


class PathQuery(Record):
    """A path below the workspace; empty for all of it."""

    path: Annotated[str, Meta(max_length=4096)] = ""


class FileEntry(Record):
    """One file of a workspace; `kind` is `file`, `directory`, `link` or `other`, `size` is in bytes."""

    path: str
    kind: str
    size: int


class Files:
    """Answer the routes about files."""

    def __init__(self, blobs: Blobs, upload_bytes: int) -> None:
        self._blobs = blobs
        self._upload_bytes = upload_bytes

    def routes(self) -> list[Route]:
        """Return the routes."""
        session, agent, tag = "/api/sessions/{session}/files", "/api/agents/{agent}/files", "files"
        raw = "application/octet-stream"
        return [
            Route("GET", session, self.list, "List the files of a session.", tag, returns=tuple[BlobRef, ...]),
            Route("POST", session, self.keep, "Upload a file for a message; the answer goes into `attachments`.", tag, UploadQuery, returns=BlobRef, status=201, takes=raw),
            Route("GET", f"{session}/{{digest}}", self.get, "Return a file of a session.", tag, UploadQuery, sends=raw),
            Route("GET", agent, self.tree, "List a directory of an agent's workspace.", tag, PathQuery, returns=tuple[FileEntry, ...]),
            Route("GET", f"{agent}/{{path}}", self.fetch, "Return a file of an agent's workspace.", tag, sends=raw),
            Route("PUT", f"{agent}/{{path}}", self.write, "Write a file of an agent's workspace.", tag, returns=FileEntry, takes=raw),
        ]  # fmt: skip

    # ------------------------------------------------------------------ of a session

    async def list(self, call: Call[Nothing, None]) -> tuple[BlobRef, ...]:
        """List a session's files."""
        return tuple((await self._known(call)).values())

    async def keep(self, call: Call[UploadQuery, None]) -> BlobRef:
        """Keep an uploaded file."""
        if not allowed(call.principal, SessionDispatch.capability):
            raise Denied("This token may not send files.", f"It needs {SessionDispatch.capability!r}.")
        data = await read(call.request, self._upload_bytes, _UPLOAD_S)
        if not data:
            raise Rejected(400, "The file is empty.", code="invalid")
        name = re.sub(r"[\x00-\x1f/\\]", "_", call.query.name)
        kind = sniffed(data) or call.request.content_type
        return await self._blobs.put_blob(data, kind, name)

    async def get(self, call: Call[UploadQuery, None]) -> web.StreamResponse:
        """Return a file that the session has; what is shown is what its bytes say it is."""
        digest = call.path("digest")
        ref = (await self._known(call, prompts=True)).get(digest)
        if ref is None:
            raise Rejected(404, "The session has no such file.", code="not_found")
        head = await self._blobs.get_blob(digest, 0, 64)
        return await self._send(call.request, sniffed(head), ref)

    async def _send(self, request: web.Request, kind: str, ref: BlobRef) -> web.StreamResponse:
        headers = {**_manners(kind, ref.name or ref.digest[:12]), "ETag": f'"{ref.digest}"'}
        headers["Cache-Control"] = "private, max-age=31536000, immutable"
        if f'"{ref.digest}"' in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        response = web.StreamResponse(headers=headers)
        response.content_length = ref.size
        await response.prepare(request)
        for offset in range(0, ref.size, _PIECE):
            await response.write(await self._blobs.get_blob(ref.digest, offset, _PIECE))
        await response.write_eof()
        return response

    async def _known(
        self, call: Call[UploadQuery, None] | Call[Nothing, None], *, prompts: bool = False
    ) -> dict[str, BlobRef]:
        events = await call.client.call(SessionHistory(session=call.path("session")))
        return {ref.digest: ref for event in events for ref in refs_of(event, prompts)}

    # ------------------------------------------------------------------ of a workspace

    async def tree(self, call: Call[PathQuery, None]) -> tuple[FileEntry, ...]:
        """List a directory."""
        path = call.query.path or "."
        entries = await self._use(call, lambda files: files.listdir(path))
        above = "" if path in ("", ".") else path.rstrip("/") + "/"
        return tuple(FileEntry(path=above + one.path, kind=one.kind, size=one.size) for one in entries)

    async def fetch(self, call: Call[Nothing, None]) -> web.Response:
        """Return a file."""
        path = _safe(call.path("path"))
        data = await self._use(call, lambda files: files.read_bytes(path, _LARGEST))
        return web.Response(body=data, headers=_manners(sniffed(data), path.rpartition("/")[2]))

    async def write(self, call: Call[Nothing, None]) -> FileEntry:
        """Write a file."""
        if not allowed(call.principal, "admin"):
            raise Denied("This token may not write files.", "It needs 'admin'.")
        path = _safe(call.path("path"))
        data = await read(call.request, self._upload_bytes, _UPLOAD_S)
        await self._use(call, lambda files: files.write_atomic(path, data))
        return FileEntry(path=path, kind="file", size=len(data))

    async def _use(self, call: Call[PathQuery, None] | Call[Nothing, None], do: Callable[[Beneath], T]) -> T:
        agent = await call.client.call(AgentGet(agent=call.path("agent")))

        def done() -> T:
            with Beneath(agent.workspace) as files:
                return do(files)

        try:
            return await asyncio.to_thread(done)
        except Protected as error:
            raise Rejected(403, str(error), code="refused") from error
        except Absent as error:
            raise Rejected(404, str(error), code="not_found") from error
        except FileError as error:  # what leads out is not there, for those who ask
            raise Rejected(404, "There is no such file in the workspace.", str(error), code="not_found") from error


def refs_of(event: Event, prompts: bool = False) -> tuple[BlobRef, ...]:
    """Return the files that an event names; with `prompts`, also what the model was told."""
    body = event.body
    if isinstance(body, ContextOpened):
        return (body.system, body.tools) if prompts else ()
    if isinstance(body, MessageReceived | MessageQueued | ModelReplied | ToolEnded):
        own = tuple(part for part in body.parts if isinstance(part, BlobRef))
        return (*own, *body.artifacts) if isinstance(body, ToolEnded) else own
    return ()


def _safe(path: str) -> str:
    """Refuse paths that some system would read in another way."""
    if not path or "\\" in path or "\0" in path or path.startswith("/") or "%" in path:
        raise Rejected(404, "There is no such file in the workspace.", code="not_found")
    return path


def _manners(kind: str, name: str) -> Json:
    """Return headers with which a browser runs nothing of a file, whatever is in it."""
    shown = kind in SHOWN
    plain = re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)[:150] or "file"
    return {
        "Content-Type": kind if shown else "application/octet-stream",
        "Content-Disposition": f'{"inline" if shown else "attachment"}; filename="{plain}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
