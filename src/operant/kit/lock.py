"""A lock between processes that a dead process cannot keep."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from types import TracebackType


class Taken(Exception):
    """Somebody else holds the lock; `holder` is what they wrote into it."""

    def __init__(self, holder: bytes) -> None:
        super().__init__("the lock is taken")
        self.holder = holder


class FileLock:
    """Hold a file while the object is open; the system lets go when the process ends, however it ends.

    The file stays where it is: removing it would let two processes hold two files of the same name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    def __enter__(self) -> FileLock:
        """Take the lock. Raises `Taken`."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if not _try_lock(handle):
                raise Taken(os.pread(handle, 4096, 0) if hasattr(os, "pread") else b"")
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return self

    def write(self, words: bytes) -> None:
        """Say in the file who holds it."""
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, words)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        handle, self._handle = self._handle, -1
        os.ftruncate(handle, 0)
        os.close(handle)


if sys.platform == "win32":  # untried: written from the documentation

    def _try_lock(handle: int) -> bool:
        import msvcrt

        os.lseek(handle, 1 << 20, os.SEEK_SET)  # beyond the words, which others may read
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _try_lock(handle: int) -> bool:
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True
