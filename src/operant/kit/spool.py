"""What a program says over hours: the newest part of it on disk, addressed by how many bytes came before."""

from __future__ import annotations

import os
from pathlib import Path


class Spool:
    """A file that keeps at least the last `keep` bytes; offsets count from the first byte ever written."""

    def __init__(self, path: Path, keep: int) -> None:
        self._path = path
        self._keep = keep
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "r+b", 0)
        self.start = 0
        self.end = 0

    def write(self, data: bytes) -> None:
        """Add bytes; a full disk keeps what it has."""
        try:
            self._file.seek(self.end - self.start)
            self.end += self._file.write(data)
            if self.end - self.start > 2 * self._keep:
                self._forget()
        except OSError:
            return

    def read(self, offset: int, most: int) -> tuple[int, bytes]:
        """Return where the bytes begin, and at most so many of them; a negative offset counts from the end."""
        begin = self.end + offset if offset < 0 else offset
        begin = min(max(begin, self.start), self.end)
        self._file.seek(begin - self.start)
        return begin, self._file.read(min(most, self.end - begin))

    def close(self) -> None:
        """Let go of the file and remove it."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _forget(self) -> None:
        """Drop the older half."""
        begin, kept = self.read(-self._keep, self._keep)
        self._file.seek(0)
        self._file.write(kept)
        self._file.truncate(len(kept))
        self.start = begin
