"""Content-addressed files: written whole or not at all, checked when they are read whole."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from operant.ext.sqlite.trouble import CHECK, of_system
from operant.sdk import Clock, Damaged, NotFound

_DIGEST = 64
_MICRO = 1_000_000


class BlobFiles:
    """The directory of blobs; all methods block, and any thread may call them."""

    def __init__(self, directory: Path, clock: Clock, *, sync: bool) -> None:
        self._directory = directory
        self._clock = clock
        self._sync = sync
        self._lock = threading.Lock()
        self._awaited: set[str] = set()  # put, and nobody has referred to it since

    def put(self, data: bytes) -> str:
        """Keep bytes and return their digest. Raises `StoreStopped`."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        with self._lock:
            self._awaited.add(digest)
        try:
            if not path.exists() or path.stat().st_size != len(data):
                if not path.parent.exists():
                    path.parent.mkdir(mode=0o700, exist_ok=True)
                    self._sync_directory(self._directory)
                self._write(path, data)
            now = self._clock.now() * 1_000
            os.utime(path, ns=(now, now))  # it is young again, so that it is not collected before it is referred to
        except OSError as error:
            raise of_system(error.errno or errno.EIO) from error
        return digest

    def get(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        """Return bytes. Raises `NotFound`, or `Damaged` when a whole file is not what its name says."""
        if not _is_digest(digest):
            raise NotFound(f"{digest[:20]!r} is not the digest of a blob.")
        try:
            with self._path(digest).open("rb") as file:
                file.seek(offset)
                data = file.read(limit or -1)
        except FileNotFoundError as error:
            raise NotFound(f"There is no blob {digest[:12]}.") from error
        except OSError as error:
            if error.errno == errno.EIO:
                raise Damaged(f"The blob {digest[:12]} cannot be read.", CHECK) from error
            raise of_system(error.errno or errno.EIO) from error
        if not offset and not limit and hashlib.sha256(data).hexdigest() != digest:
            raise Damaged(f"The blob {digest[:12]} is not what was written.", CHECK)
        return data

    def sound(self, digest: str, *, read: bool) -> bool:
        """Tell whether a blob is there, and with `read` whether it is what was written."""
        try:
            if read:
                self.get(digest)
            return self._path(digest).exists()
        except (NotFound, Damaged):
            return False

    def referred(self, digests: Iterable[str]) -> None:
        """Note that somebody's history now has these blobs."""
        with self._lock:
            self._awaited.difference_update(digests)

    def unreferenced(self, digests: Iterable[str]) -> int:
        """Remove blobs that nobody refers to, but for those that were put since; return how many went."""
        gone = 0
        for digest in digests:
            with self._lock:
                if digest not in self._awaited and self._path(digest).exists():
                    self._path(digest).unlink(missing_ok=True)
                    gone += 1
        return gone

    def older(self, seconds: float) -> Iterator[str]:
        """Yield the digests of blobs that were last wanted so long ago, and remove what interrupted writes left."""
        old = self._clock.now() - int(seconds * _MICRO)
        for path in self._directory.glob("??/*"):
            try:
                changed = path.stat().st_mtime_ns // 1_000
            except FileNotFoundError:  # an erased session has just taken it along
                continue
            if changed > old:
                continue
            if _is_digest(path.name):
                yield path.name
            else:
                path.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._directory / digest[:2] / digest

    def _write(self, path: Path, data: bytes) -> None:
        handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                if self._sync:
                    os.fsync(file.fileno())
            Path(temporary).rename(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._sync_directory(path.parent)

    def _sync_directory(self, path: Path) -> None:
        if not self._sync or os.name == "nt":
            return
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _is_digest(name: str) -> bool:
    return len(name) == _DIGEST and set(name) <= set("0123456789abcdef")
