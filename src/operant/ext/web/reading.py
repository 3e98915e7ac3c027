"""Bytes to words: each kind of content by what knows it, foreign formats in a process of their own."""

from __future__ import annotations

import codecs
import re
import sys
import tempfile
from pathlib import Path

import msgspec

from operant.ext.web.page import CannotFetch, Raw, Read
from operant.kit import proc
from operant.kit.documents.request import CannotRead, Request, kind_of, read_answer
from operant.sdk import Blobs

TIMEOUT_S = 20.0
_MEMORY_BYTES = 1 << 30
_OUTPUT_BYTES = 8_000_000
_MOST_PAGES = 200
_META = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}


class Reading:
    """Read what was fetched."""

    def __init__(self, blobs: Blobs, folder: str) -> None:
        self._blobs = blobs
        self._folder = Path(folder)

    async def read(self, raw: Raw, *, inline_links: bool) -> tuple[Read, bool]:
        """Return the words, and whether a browser would find more. Raises `CannotFetch`."""
        if _is_html(raw):
            return await self._page(raw, inline_links)
        return await self._other(raw), False

    async def _page(self, raw: Raw, inline_links: bool) -> tuple[Read, bool]:
        from operant.kit.readable.page import Page

        with self._file(decoded(raw).encode("utf-8", "replace")) as path:
            argv = (sys.executable, "-I", "-m", "operant.kit.readable", path, raw.url, "1" if inline_links else "0")
            answer = await _run(argv)
        try:
            page = msgspec.json.decode(answer, type=Page)
        except msgspec.MsgspecError as error:
            raise CannotFetch(f"{raw.url} is a page that cannot be read.") from error
        title = "" if page.text.startswith(f"# {page.title}\n") else f"# {page.title}"
        about = " · ".join(one for one in (page.by, page.date, page.site) if one)
        head = "\n".join(one for one in (title if page.title else "", about) if one)
        read = Read(url=raw.url, head=head, text=page.text, tier=raw.tier, links=tuple(page.links))
        return read, page.wants_script

    async def _other(self, raw: Raw) -> Read:
        kind = raw.media_type
        if kind in _PICTURES:
            blob = await self._blobs.put_blob(raw.body, kind, raw.url.rpartition("/")[2][:80])
            return Read(url=raw.url, head="", text=f"[a picture, {len(raw.body):,} bytes]", tier=raw.tier, picture=blob)
        document = kind_of(raw.url.partition("?")[0], raw.body[:4096])
        if document in ("pdf", "office", "rtf"):
            return Read(url=raw.url, head="", text=await self._document(raw, document), tier=raw.tier)
        if b"\0" in raw.body[:4096] and not raw.body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise CannotFetch(f"{raw.url} is {kind or 'of no stated kind'}, {len(raw.body):,} bytes, and not text.")
        text = decoded(raw)
        if kind.endswith("json") or text.lstrip()[:1] in ("{", "["):
            text = _pretty(text)
        elif kind.endswith("xml"):
            from operant.ext.web.feeds import feed

            text = feed(raw.body, raw.url) or text
        return Read(url=raw.url, head="", text=text, tier=raw.tier)

    async def _document(self, raw: Raw, kind: str) -> str:
        with self._file(raw.body) as path:
            where = Path(path)
            request = Request(root=str(where.parent), roots={}, path=where.name, kind=kind, limit=_MOST_PAGES)
            answer = await _run((sys.executable, "-I", "-m", "operant.kit.documents", request.encode()))
        try:
            found = read_answer(answer)
        except CannotRead as error:
            raise CannotFetch(f"{raw.url}: {error}") from error
        words = found.body.decode("utf-8", "replace")
        if found.kind == "refused":
            raise CannotFetch(f"{raw.url}: {words}")
        return words.replace("\f", "\n\n")

    def _file(self, data: bytes) -> _Kept:
        return _Kept(data, self._folder)


class _Kept:
    """Bytes in a private file while the context is open."""

    def __init__(self, data: bytes, folder: Path) -> None:
        self._data = data
        self._folder = folder
        self._path = ""

    def __enter__(self) -> str:
        handle, self._path = tempfile.mkstemp(dir=self._folder, prefix="page-")
        with open(handle, "wb") as file:  # noqa: PTH123 - an open handle
            file.write(self._data)
        return self._path

    def __exit__(self, *reason: object) -> None:
        Path(self._path).unlink(missing_ok=True)


async def _run(argv: tuple[str, ...]) -> bytes:
    limits = proc.Limits(
        memory_bytes=_OUTPUT_BYTES,
        spool_bytes=0,
        rlimits=proc.rlimits(memory_bytes=_MEMORY_BYTES, cpu_s=int(TIMEOUT_S)),
    )
    finished = await proc.run(argv, cwd="/", env=_ENVIRONMENT, timeout_s=TIMEOUT_S, limits=limits)
    try:
        answer = finished.output.whole()
    finally:
        finished.output.close()
    if finished.timed_out or finished.code != 0:
        raise CannotFetch("The page cannot be read: it is too large, or made to be hard to read.")
    return answer


def decoded(raw: Raw) -> str:
    """Return text by its byte order mark, the header, or what the page says of itself; else as UTF-8."""
    declared = _META.search(raw.body[:4096])
    marked = next((name for mark, name in _MARKS if raw.body.startswith(mark)), "")
    for name in (marked, raw.charset, declared[1].decode() if declared else "", "utf-8"):
        try:
            return raw.body.decode(name, "replace") if name else _strictly(raw.body)
        except (LookupError, UnicodeDecodeError):
            continue
    return raw.body.decode("latin-1")


def _strictly(data: bytes) -> str:
    return data.decode("utf-8")


def _is_html(raw: Raw) -> bool:
    if raw.media_type in ("text/html", "application/xhtml+xml"):
        return True
    head = raw.body[:1000].lstrip().lower()
    return not raw.media_type and head.startswith((b"<!doctype html", b"<html"))


def _pretty(text: str) -> str:
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return text
