"""What is in the folder of a skill, as one hash: what was allowed is allowed with it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from operant.sdk import Clock, Invalid

MOST_FILES = 5_000
MOST_BYTES = 64 << 20
_NOT_CONTENT = frozenset((".history", ".git", "__pycache__"))
_SETTLED_NS = 2_000_000_000
"""How old a change must be: within one tick of a file system's clock (2 s at most) two changes look alike."""


def digest_of(folder: Path, declared: bytes = b"") -> str:
    """Return the hash of a skill's folder: what it declares, names, whether they can be run, and content.

    Raises `Invalid`.
    """
    _look(folder)
    return _hash(folder, declared)


def files_of(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of a folder in order. Raises `Invalid` for links: what they lead to is not in the content."""
    for top, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name not in _NOT_CONTENT)
        for name in (*names, *sorted(files)):
            path = Path(top, name)
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                raise Invalid(f"{path} is a link; a skill with a service is a folder of plain files.")
            if stat.S_ISREG(found.st_mode):
                yield path, found


class _Looks(NamedTuple):
    """How the files of a folder look without being read; `changed` is when one of them last did, in ns since 1970."""

    marks: bytes
    changed: int


class Contents:
    """The hashes of folders; one is read again only when one of its files looks different.

    A program can give a file its old size and time back, but not the time at which it did so (`ctime`), and that is
    looked at too. Still, this is for looking: what is copied to be started is always read.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[Path, tuple[bytes, bytes, str]] = {}

    def digest(self, folder: Path, declared: bytes) -> str:
        """Return `digest_of` a folder. Raises `Invalid`."""
        now = self._clock.now() * 1_000
        looks = _look(folder)
        marks, words, digest = self._known.get(folder, (b"", b"", ""))
        if marks == looks.marks and words == declared:
            return digest
        digest = _hash(folder, declared)
        if looks.changed + _SETTLED_NS < now and _look(folder) == looks:
            self._known[folder] = (looks.marks, declared, digest)
        else:
            self.forget(folder)
        return digest

    def forget(self, folder: Path) -> None:
        """Forget a folder that has gone."""
        self._known.pop(folder, None)


def _look(folder: Path) -> _Looks:
    """Look at the files of a folder without reading them. Raises `Invalid` when they are too many or too large."""
    marks, size, changed = hashlib.sha256(), 0, 0
    for count, (path, one) in enumerate(files_of(folder), 1):
        size += one.st_size
        if count > MOST_FILES or size > MOST_BYTES:
            raise Invalid(f"{folder} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB.")
        told = (os.fspath(path), one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino, one.st_dev, one.st_mode)
        marks.update(os.fsencode(f"{told}\n"))
        changed = max(changed, one.st_mtime_ns, one.st_ctime_ns)
    return _Looks(marks.digest(), changed)


def _hash(folder: Path, declared: bytes) -> str:
    whole = hashlib.sha256(declared)
    for path, _ in files_of(folder):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256")
        runs = "x" if os.access(path, os.X_OK) else "-"
        whole.update(os.fsencode(f"{path.relative_to(folder).as_posix()}\0{runs}\0{content.hexdigest()}\n"))
    return whole.hexdigest()
