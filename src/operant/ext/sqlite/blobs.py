"""Content-addressed files: written whole or not at all, checked when they are read whole."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from operant.sdk import Damaged, NotFound, StoreStopped

_DIGEST = 64


class BlobFiles:
    """The directory of blobs; all methods block."""

    def __init__(self, directory: Path, *, sync: bool) -> None:
        self._directory = directory
        self._sync = sync

    def put(self, data: bytes) -> str:
        """Keep bytes and return their digest. Raises `StoreStopped`."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        try:
            if path.exists():
                os.utime(path)  # it is young again, so that it is not collected before it is referred to
                return digest
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._write(path, data)
        except OSError as error:
            raise StoreStopped(
                f"A file of {len(data)} bytes could not be kept: {error.strerror}.", "Free space or mend the disk."
            ) from error
        return digest

    def get(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        """Return bytes. Raises `NotFound`, or `Damaged` when a whole file is not what its name says."""
        if len(digest) != _DIGEST or not set(digest) <= set("0123456789abcdef"):
            raise NotFound(f"{digest[:20]!r} is not the digest of a blob.")
        try:
            with self._path(digest).open("rb") as file:
                file.seek(offset)
                data = file.read(limit or -1)
        except FileNotFoundError as error:
            raise NotFound(f"There is no blob {digest[:12]}.") from error
        except OSError as error:
            raise StoreStopped(f"The blob {digest[:12]} cannot be read: {error.strerror}.") from error
        if not offset and not limit and hashlib.sha256(data).hexdigest() != digest:
            raise Damaged(f"The blob {digest[:12]} is not what was written.", "Run `operant doctor`.")
        return data

    def all(self) -> Iterator[tuple[str, float]]:
        """Yield every digest with the time, in seconds since 1970, at which its file was last wanted."""
        for path in self._directory.glob("??/*"):
            if len(path.name) == _DIGEST:
                yield path.name, path.stat().st_mtime

    def remove(self, digest: str) -> None:
        """Remove a blob that nobody refers to."""
        self._path(digest).unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._directory / digest[:2] / digest

    def _write(self, path: Path, data: bytes) -> None:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
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
        if self._sync:
            directory = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
