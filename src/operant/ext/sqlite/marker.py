"""The mark of an open store: a small file with the number of commits made.

It is removed when the store is closed. Found at the start, it tells that a process ended without closing, and, compared
with the database, whether commits that somebody was told of are missing: a log that was deleted, cut or emptied.
"""

from __future__ import annotations

import os
from pathlib import Path

_WIDTH = 20
_positioned = getattr(os, "pwrite", None)


class Marker:
    """Keep the number of commits beside the database, written after each commit and before anybody hears of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    def read(self) -> int | None:
        """Return what the last process left; None after a clean end. An unreadable number counts as 0."""
        try:
            words = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return int(words) if words.strip().isdigit() else 0

    def place(self, commits: int) -> None:
        """Make the mark, durably."""
        self._handle = os.open(self._path, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
        self.note(commits)
        os.fsync(self._handle)

    def note(self, commits: int) -> None:
        """Write the number, without waiting for the disk: the mark may be behind the database, never ahead of it."""
        words = b"%0*d\n" % (_WIDTH, commits)
        if _positioned is not None:
            _positioned(self._handle, words, 0)
        else:
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, words)

    def leave(self) -> None:
        """Let go of the mark and keep it: the end was not clean."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def remove(self) -> None:
        """Take the mark away: everything is in the database."""
        self.leave()
        self._path.unlink(missing_ok=True)
