"""Unpack an archive below a directory. Run as a program: `python -I -m operant.kit.unpack REQUEST`.

Every entry is judged before the first byte is written, and while they are written the bytes are counted again: what
an archive says of itself need not be true. When something fails what was written is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import os
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import IO

from operant.kit.archives import MOST_BYTES, BadArchive, Item, fault_of, items, judge
from operant.kit.beneath import NOTHING, Absent, Beneath, FileError

REFUSED = 2
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    EOFError,
    OSError,
    ValueError,
    MemoryError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to unpack, and where; `dry_run` only judges."""

    root: str
    roots: dict[str, str]
    protected: list[str]
    path: str
    into: str
    largest: int
    dry_run: bool = False

    def encode(self) -> str:
        """Return it as the argument of the program."""
        return json.dumps(asdict(self))


def unpack(request: Request) -> dict[str, str]:
    """Unpack, and return the digest of each file by its name. Raises `BadArchive` and `FileError`."""
    with Beneath(request.root, roots=request.roots, protected=request.protected) as files:
        _need_empty(files, request.into)
        with files.open_read(request.path) as file:
            if os.fstat(file.fileno()).st_size > request.largest:
                raise BadArchive(f"It is larger than {request.largest:,} bytes.")
            judgement = judge(file, request.path, lambda name: _forbidden(files, f"{request.into}/{name}"))
            if judgement.fault:
                raise BadArchive(f"It is not unpacked: {judgement.fault}.")
            if request.dry_run:
                chosen = (one.item for one in judgement.entries if one.item.kind == "file")
                return {files.name_of(f"{request.into}/{item.name}"): "" for item in chosen}
            return _Writer(files, request.into).write(items(file, request.path))


class _Writer:
    """Write entries, and remember them in case they must go again."""

    def __init__(self, files: Beneath, into: str) -> None:
        self._files = files
        self._into = into
        self._room = MOST_BYTES
        self._made: dict[str, str] = {}

    def write(self, entries: Iterator[Item]) -> dict[str, str]:
        """Write all entries, or leave nothing. Raises `BadArchive`, `FileError` and what damaged archives raise."""
        try:
            for item in entries:
                self._put(item)
        except (BadArchive, FileError, *_DAMAGED):
            self._remove()
            raise
        return self._made

    def _put(self, item: Item) -> None:
        if fault := fault_of(item) or _forbidden(self._files, f"{self._into}/{item.name}"):
            raise BadArchive(f"{item.name!r} {fault}.")  # not what was judged: the archive was replaced
        name = self._files.name_of(f"{self._into}/{item.name}")
        if item.kind == "directory":
            self._files.mkdirs(name)
            return
        with item.open() as source:
            data = _read(source, min(item.size, self._room) + 1)
        if len(data) != item.size or len(data) > self._room:
            raise BadArchive(f"{item.name!r} has another size than the archive says.")
        self._room -= len(data)
        self._files.write_atomic(name, data, expect=NOTHING, mode=0o755 if item.mode & 0o100 else None)
        self._made[name] = hashlib.sha256(data).hexdigest()

    def _remove(self) -> None:
        for name in self._made:
            with contextlib.suppress(FileError):
                self._files.remove(name)


def _read(source: IO[bytes], limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := source.read(min(limit, 1 << 20))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _need_empty(files: Beneath, into: str) -> None:
    try:
        if files.listdir(into):
            raise BadArchive(f"{into} is not empty; an archive is unpacked into a directory of its own.")
    except Absent:
        files.need_writable(into)


def _forbidden(files: Beneath, path: str) -> str:
    try:
        files.need_writable(path)
    except FileError as error:
        return f"may not be written: {error}".rstrip(".")
    return ""


def main(argument: str) -> int:
    """Print the digests of the files by name, or why nothing was unpacked."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    try:
        out.write(json.dumps(unpack(Request(**json.loads(argument)))))
    except (BadArchive, FileError) as error:
        out.write(str(error))
        return REFUSED
    except _DAMAGED as error:
        out.write(f"The archive is damaged: {str(error)[:200] or type(error).__name__}.")
        return REFUSED
    finally:
        out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
