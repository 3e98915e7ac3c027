"""Open files below a directory and nowhere else, by directory handles: nothing is checked first and opened later.

Reading follows symbolic links as long as the kernel (`openat2`, RESOLVE_BENEATH) says that they stay below; where it
has no `openat2`, and for all writing, no link is followed at all. A directory elsewhere can be given a name below the
root by the constructor, and by nobody else. Every failure is a `FileError` with a sentence that can be shown.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import struct
import unicodedata
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, NamedTuple

from operant.kit.handles import (
    DIRECTORY,
    NOTHING,
    Absent,
    Changed,
    Entry,
    FileError,
    Found,
    Outside,
    Protected,
    Unfit,
    Version,
    as_file,
    descend,
    entries_of,
    entry_of,
    mode_of_target,
    open_here,
    read_up_to,
    remove_file,
    replace_file,
    shown_name,
    told,
    version_of,
)

__all__ = [
    "NOTHING",
    "Absent",
    "Beneath",
    "Changed",
    "Entry",
    "FileError",
    "Found",
    "Outside",
    "Protected",
    "Unfit",
    "Version",
]

_OPENAT2 = 437  # the same on every architecture
_RESOLVE = 0x08 | 0x02  # RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS
_TRIES = 16  # EAGAIN: a directory was renamed while the kernel looked
_NOT_HERE = re.compile(r"^(~|\$\w|\$\{|[A-Za-z][A-Za-z0-9+.-]*:/)")


class _Place(NamedTuple):
    root: int
    parts: tuple[str, ...]
    name: str


class Beneath:
    """Files below `root`; `roots` maps a first path component to a directory that stands elsewhere.

    `protected` are patterns of names that are never written: `name*` matches any component, `a/b` consecutive ones,
    `a/b/**` what is below. Names are compared without case, accents composed, invisible characters, trailing dots and
    spaces, and stream suffixes.
    """

    def __init__(self, root: str, *, roots: Mapping[str, str] | None = None, protected: Sequence[str] = ()) -> None:
        self._protected = tuple(tuple(_fold(part) for part in pattern.split("/")) for pattern in protected)
        self._path = os.path.abspath(root)  # noqa: PTH100 - resolve() would follow links
        self._openat2 = _openat2()
        self._handles: dict[str, int] = {}
        try:
            with told(self._path):
                self._handles[""] = os.open(self._path, DIRECTORY)
            for name, directory in (roots or {}).items():
                with told(name):
                    self._handles[name] = os.open(directory, DIRECTORY)
        except FileError:
            self.close()
            raise

    def __enter__(self) -> Beneath:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the directories."""
        while self._handles:
            os.close(self._handles.popitem()[1])

    def name_of(self, path: str) -> str:
        """Return the one name of a path, relative to the root. Raises `Outside`."""
        return self._place(path).name

    def path_of(self, path: str) -> str:
        """Return a path for people and for systems without handles. Raises `Outside`."""
        return f"{self._path}/{self._place(path).name}"

    # ------------------------------------------------------------------------ reading

    def open_read(self, path: str) -> BinaryIO:
        """Open a regular file; a pipe or device is refused and not waited for."""
        place = self._place(path)
        with told(place.name):
            return as_file(self._open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), place.name)

    def read(self, path: str, limit: int) -> tuple[bytes, Version]:
        """Return a file's bytes and which state of it they are. Raises `Unfit` over `limit` bytes."""
        with self.open_read(path) as file, told(path):
            version = version_of(os.fstat(file.fileno()))
            if version.size <= limit:
                data = read_up_to(file, limit + 1)
                if len(data) <= limit:
                    return data, version
            raise Unfit(
                f"{shown_name(path)} is too large: {version.size:,} bytes, and {limit:,} are the most that is read."
            )

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Return a file's bytes. Raises `Unfit` over `limit` bytes."""
        return self.read(path, limit)[0]

    def stat(self, path: str) -> Entry:
        """Tell what a path stands for."""
        place = self._place(path)
        with told(place.name):
            fd = self._open(place, getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK))
        try:
            return entry_of(place.name, os.fstat(fd))
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def open_dir(self, path: str) -> Generator[int]:
        """Open a directory as a handle."""
        place = self._place(path)
        with told(place.name):
            fd = self._open(place, DIRECTORY)
        try:
            yield fd
        finally:
            os.close(fd)

    def listdir(self, path: str) -> list[Entry]:
        """List a directory by name."""
        with self.open_dir(path) as fd, told(path):
            return entries_of(fd, "")

    def tree(self, path: str, depth: int, skip: frozenset[str] = frozenset()) -> Iterator[Entry]:
        """List a directory and those below, `depth` levels, links not followed; what is named in `skip` stays shut."""
        with self.open_dir(path) as fd:
            for entry, _ in descend(fd, "", depth, skip):
                yield entry

    def walk(self, path: str, skip: frozenset[str] = frozenset()) -> Iterator[Found]:
        """Yield every regular file below a directory, links not followed; `Found.open` works until the next one."""
        with self.open_dir(path) as fd:
            for entry, directory in descend(fd, "", 64, skip):
                if entry.kind == "file":
                    name = os.path.basename(entry.path)  # noqa: PTH119 - a name, not a file
                    yield Found(entry.path, entry.size, functools.partial(open_here, directory, name))

    # ------------------------------------------------------------------------ writing

    def mkdirs(self, path: str) -> None:
        """Make a directory and those above it; one that is there is left as it is."""
        place = self._place(path)
        self._refuse_protected(place)
        os.close(self._walk(place.root, place.parts, place.name, make=True))

    def write_atomic(self, path: str, data: bytes, *, expect: Version | None = None, mode: int | None = None) -> None:
        """Put a whole new file in a path's place, durably, with the old one's mode; make the directories above.

        Raises `Changed` when `expect` is given and the file is no longer in that state (`NOTHING`: when it is there).
        What is not a regular file, or has more than one name (a hard link), is not replaced. `mode` are the
        permissions of a file that is new.
        """
        with self._parent(path, make=expect in (None, NOTHING)) as (directory, place), told(place.name):
            replace_file(directory, place.parts[-1], place.name, data, expect, mode)

    def remove(self, path: str, *, expect: Version | None = None) -> None:
        """Remove a regular file, durably. Raises `Changed` as `write_atomic` does."""
        with self._parent(path, make=False) as (directory, place), told(place.name):
            remove_file(directory, place.parts[-1], place.name, expect)

    def permissions(self, path: str) -> int:
        """Return the permissions of a file that may be written. Raises `Absent`, and what forbids writing it."""
        with self._parent(path, make=False) as (directory, place), told(place.name):
            mode = mode_of_target(directory, place.parts[-1], place.name)
        if mode is None:
            raise Absent(f"{shown_name(place.name)} does not exist.")
        return mode

    def need_writable(self, path: str) -> str:
        """Return the one name of a path that tools may write. Raises `Protected` or `Outside`."""
        place = self._place(path)
        self._refuse_protected(place)
        return place.name

    # ------------------------------------------------------------------------ how

    @contextlib.contextmanager
    def _parent(self, path: str, *, make: bool) -> Generator[tuple[int, _Place]]:
        """Open the directory that a path to be written is in."""
        place = self._place(path)
        self._refuse_protected(place)
        if not place.parts:
            raise Unfit(f"{shown_name(path)} is a directory.")
        directory = self._walk(place.root, place.parts[:-1], place.name, make=make)
        try:
            yield directory, place
        finally:
            os.close(directory)

    def _place(self, path: str) -> _Place:
        if "\0" in path:
            raise Outside("A path cannot have a NUL character in it.")
        if _NOT_HERE.match(path):
            raise Outside(f"{shown_name(path)} is not a path below the workspace; nothing in it is expanded.")
        parts: list[str] = []
        for part in self._below(path).split("/"):
            if part == ".." and not parts:
                raise Outside(f"{shown_name(path)} leads out of the workspace.")
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        name = "/".join(parts) or "."
        if parts and parts[0] and parts[0] in self._handles:
            return _Place(self._handles[parts[0]], tuple(parts[1:]), name)
        return _Place(self._handles[""], tuple(parts), name)

    def _below(self, path: str) -> str:
        """Take an absolute path as one below the root if it begins with the root as it was given."""
        if not path.startswith("/"):
            return path
        if path == self._path or path.startswith(self._path.rstrip("/") + "/"):
            return path[len(self._path) :].lstrip("/")
        raise Outside(f"{shown_name(path)} is outside the workspace.")

    def _open(self, place: _Place, flags: int) -> int:
        flags |= os.O_CLOEXEC
        if self._openat2 is not None:
            return self._openat2(place.root, "/".join(place.parts) or ".", flags)
        if not place.parts:
            return os.open(".", flags, dir_fd=place.root)
        directory = self._walk(place.root, place.parts[:-1], place.name, make=False)
        try:
            return os.open(place.parts[-1], flags | os.O_NOFOLLOW, dir_fd=directory)
        finally:
            os.close(directory)

    def _walk(self, root: int, parts: Sequence[str], name: str, *, make: bool) -> int:
        """Return a handle of a directory, going down one by one without following a link."""
        with told(name):
            here = os.open(".", DIRECTORY, dir_fd=root)
            for part in parts:
                try:
                    below = _step(here, part, make=make)
                finally:
                    os.close(here)
                here = below
            return here

    def _refuse_protected(self, place: _Place) -> None:
        folded = [_fold(part) for part in place.name.replace("\\", "/").split("/")]
        for pattern in self._protected:
            if _matches(pattern, folded):
                shown = "/".join(pattern)
                raise Protected(f"{shown_name(place.name)} is protected ({shown}) and is not written by tools.")


def _step(here: int, part: str, *, make: bool) -> int:
    flags = DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(part, flags, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=here)
    return os.open(part, flags, dir_fd=here)


def _matches(pattern: tuple[str, ...], folded: Sequence[str]) -> bool:
    names = pattern[:-1] if pattern[-1] == "**" else pattern
    for start in range(len(folded) - len(names) + 1):
        window = folded[start : start + len(names)]
        if all(fnmatchcase(part, wanted) for part, wanted in zip(window, names, strict=True)):
            return True
    return False


def _fold(part: str) -> str:
    """Bring a file name to the form in which file systems that forgive spelling would find it."""
    part = unicodedata.normalize("NFKC", part).casefold()
    part = "".join(char for char in unicodedata.normalize("NFKC", part) if unicodedata.category(char) != "Cf")
    return part.split(":", 1)[0].rstrip(". ") or part


def _openat2() -> Callable[[int, str, int], int] | None:
    """Return `openat2` confined beneath a handle, or None where the system has none or forbids it."""
    if not hasattr(os, "O_PATH"):
        return None
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def confined(directory: int, path: str, flags: int) -> int:
        how: Any = ctypes.create_string_buffer(struct.pack("=QQQ", flags, 0, _RESOLVE), 24)
        name = os.fsencode(path)
        for _ in range(_TRIES):
            fd: int = libc.syscall(_OPENAT2, directory, name, how, 24)
            if fd >= 0:
                return fd
            if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
                break
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)

    try:
        probe = os.open("/", DIRECTORY)
        try:
            os.close(confined(probe, ".", DIRECTORY))
        finally:
            os.close(probe)
    except OSError:
        return None
    return confined
