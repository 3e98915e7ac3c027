"""The web page: a few files beside this one, small, tagged, and compressed once."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from operant.ext.gateway.problem import Rejected

_FOLDER = Path(__file__).parent / "page_files"
_KINDS = {
    ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain",
    ".json": "application/json", ".webmanifest": "application/manifest+json",
}  # fmt: skip


@dataclass(frozen=True)
class _File:
    """One file of the page."""

    body: bytes
    packed: bytes
    kind: str
    tag: str


class Page:
    """Serve the files of the page, and no others: what is not in the list is not there."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._folder = folder
        self._files: dict[str, _File] = {}
        self._names = frozenset(
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*")
            if path.suffix in _KINDS and path.is_file()
        )

    async def index(self, request: web.Request) -> web.StreamResponse:
        """Serve the page itself."""
        return self._send(request, "index.html")

    async def icon(self, request: web.Request) -> web.StreamResponse:
        """Serve the icon that browsers ask for by themselves."""
        return self._send(request, "icon.svg")

    async def file(self, request: web.Request) -> web.StreamResponse:
        """Serve a file of the page."""
        return self._send(request, request.match_info["path"])

    def _send(self, request: web.Request, name: str) -> web.Response:
        if name not in self._names:
            raise Rejected(404, "The page has no such file.", code="not_found")
        file = self._files.get(name) or self._read(name)
        headers = {"ETag": file.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if file.tag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        body = file.body
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            body = file.packed
            headers["Content-Encoding"] = "gzip"
        charset = None if file.kind == "application/json" else "utf-8"
        return web.Response(body=body, headers=headers, content_type=file.kind, charset=charset)

    def _read(self, name: str) -> _File:
        path = self._folder / name
        body = path.read_bytes()
        tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        file = _File(body=body, packed=gzip.compress(body, 9), kind=_KINDS[path.suffix], tag=tag)
        self._files[name] = file
        return file
