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
import stat
import struct
import unicodedata
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, NamedTuple

_OPENAT2 = 437  # the same on every architecture
_RESOLVE = 0x08 | 0x02  # RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS
_TRIES = 16  # EAGAIN: a directory was renamed while the kernel looked
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PIECE = 1 << 20
_NOT_HERE = re.compile(r"^(~|\$\w|\$\{|[A-Za-z][A-Za-z0-9+.-]*:/)")


class FileError(Exception):
    """Say in one sentence why a file cannot be used."""


class Absent(FileError):
    """The file is not there."""


class Outside(FileError):
    """The path leads out of the root, or uses a link where none may be."""


class Protected(FileError):
    """The policy keeps this name from being written."""


class Unfit(FileError):
    """It is not the kind of file that is needed, or it is too large."""


class Changed(FileError):
    """It is no longer the file that was read."""


class Version(NamedTuple):
    """What tells one state of a file from the next."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class Entry(NamedTuple):
    """One name in a directory; `kind` is `file`, `directory`, `link` or `other`."""

    path: str
    kind: str
    size: int


class Found(NamedTuple):
    """A file met on a walk; `open` reads it without following links."""

    path: str
    size: int
    open: Callable[[], BinaryIO]


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
            with _told(self._path):
                self._handles[""] = os.open(self._path, _DIRECTORY)
            for name, directory in (roots or {}).items():
                with _told(name):
                    self._handles[name] = os.open(directory, _DIRECTORY)
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
        with _told(place.name):
            return _as_file(self._open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), place.name)

    def read(self, path: str, limit: int) -> tuple[bytes, Version]:
        """Return a file's bytes and which state of it they are. Raises `Unfit` over `limit` bytes."""
        with self.open_read(path) as file, _told(path):
            version = _version(os.fstat(file.fileno()))
            if version.size <= limit:
                data = _read_up_to(file, limit + 1)
                if len(data) <= limit:
                    return data, version
            raise Unfit(
                f"{_shown(path)} is too large: {version.size:,} bytes, and {limit:,} are the most that is read."
            )

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Return a file's bytes. Raises `Unfit` over `limit` bytes."""
        return self.read(path, limit)[0]

    def stat(self, path: str) -> Entry:
        """Tell what a path stands for."""
        place = self._place(path)
        with _told(place.name):
            fd = self._open(place, getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK))
        try:
            return _entry(place.name, os.fstat(fd))
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def open_dir(self, path: str) -> Generator[int]:
        """Open a directory as a handle."""
        place = self._place(path)
        with _told(place.name):
            fd = self._open(place, _DIRECTORY)
        try:
            yield fd
        finally:
            os.close(fd)

    def listdir(self, path: str) -> list[Entry]:
        """List a directory by name."""
        with self.open_dir(path) as fd, _told(path):
            return _entries(fd, "")

    def tree(self, path: str, depth: int, skip: frozenset[str] = frozenset()) -> Iterator[Entry]:
        """List a directory and those below, `depth` levels, links not followed; what is named in `skip` stays shut."""
        with self.open_dir(path) as fd:
            for entry, _ in _descend(fd, "", depth, skip):
                yield entry

    def walk(self, path: str, skip: frozenset[str] = frozenset()) -> Iterator[Found]:
        """Yield every regular file below a directory, links not followed; `Found.open` works until the next one."""
        with self.open_dir(path) as fd:
            for entry, directory in _descend(fd, "", 64, skip):
                if entry.kind == "file":
                    name = os.path.basename(entry.path)  # noqa: PTH119 - a name, not a file
                    yield Found(entry.path, entry.size, functools.partial(_open_here, directory, name))

    # ------------------------------------------------------------------------ writing

    def mkdirs(self, path: str) -> None:
        """Make a directory and those above it; one that is there is left as it is."""
        place = self._place(path)
        self._refuse_protected(place)
        os.close(self._walk(place.root, place.parts, place.name, make=True))

    def write_atomic(self, path: str, data: bytes, *, expect: Version | None = None) -> None:
        """Put a whole new file in a path's place, durably, with the old one's mode; make the directories above.

        Raises `Changed` when `expect` is given and the file is no longer in that state. What is not a regular file,
        or has more than one name (a hard link), is not replaced.
        """
        place = self._place(path)
        self._refuse_protected(place)
        if not place.parts:
            raise Unfit(f"{_shown(path)} is a directory.")
        directory = self._walk(place.root, place.parts[:-1], place.name, make=expect is None)
        try:
            with _told(place.name):
                _replace(directory, place.parts[-1], place.name, data, expect)
        finally:
            os.close(directory)

    # ------------------------------------------------------------------------ how

    def _place(self, path: str) -> _Place:
        if "\0" in path:
            raise Outside("A path cannot have a NUL character in it.")
        if _NOT_HERE.match(path):
            raise Outside(f"{_shown(path)} is not a path below the workspace; nothing in it is expanded.")
        parts: list[str] = []
        for part in self._below(path).split("/"):
            if part == ".." and not parts:
                raise Outside(f"{_shown(path)} leads out of the workspace.")
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
        raise Outside(f"{_shown(path)} is outside the workspace.")

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
        with _told(name):
            here = os.open(".", _DIRECTORY, dir_fd=root)
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
                raise Protected(f"{_shown(place.name)} is protected ({shown}) and is not written by tools.")


def _step(here: int, part: str, *, make: bool) -> int:
    flags = _DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(part, flags, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=here)
    return os.open(part, flags, dir_fd=here)


def _replace(directory: int, last: str, shown: str, data: bytes, expect: Version | None) -> None:
    mode = _mode_of_target(directory, last, shown)
    if expect is not None and mode is None:
        raise Changed(f"{_shown(shown)} is gone since it was read.")
    temporary = f".{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=directory)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(fd, mode)
            os.fsync(fd)
        if expect is not None and _version(os.lstat(last, dir_fd=directory)) != expect:
            raise Changed(f"{_shown(shown)} changed since it was read.")
        os.rename(temporary, last, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)


def _mode_of_target(directory: int, last: str, shown: str) -> int | None:
    """Return the permissions of what will be replaced, None where there is nothing. Raises what forbids it."""
    try:
        there = os.stat(last, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(there.st_mode):
        raise Outside(f"{_shown(shown)} is a symbolic link; name the file that it stands for.")
    _need_file(there, shown)
    if there.st_nlink > 1:
        raise Outside(f"{_shown(shown)} has {there.st_nlink} names (hard links); it is not written through one.")
    return stat.S_IMODE(there.st_mode) & 0o777


def _descend(fd: int, prefix: str, depth: int, skip: frozenset[str]) -> Iterator[tuple[Entry, int]]:
    for entry in _entries(fd, prefix):
        yield entry, fd
        name = entry.path[len(prefix) :]
        if entry.kind != "directory" or depth <= 1 or name in skip:
            continue
        try:
            below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        except OSError:
            continue  # unreadable, or no longer what it was
        try:
            yield from _descend(below, f"{entry.path}/", depth - 1, skip)
        finally:
            os.close(below)


def _entries(fd: int, prefix: str) -> list[Entry]:
    found: list[Entry] = []
    with os.scandir(fd) as names:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found.append(_entry(prefix + name.name, name.stat(follow_symlinks=False)))
    return sorted(found)


def _entry(path: str, info: os.stat_result) -> Entry:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    return Entry(path, kinds.get(stat.S_IFMT(info.st_mode), "other"), info.st_size)


def _open_here(directory: int, name: str) -> BinaryIO:
    """Open a file of a directory for reading. Raises `FileError`."""
    with _told(name):
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        return _as_file(os.open(name, flags, dir_fd=directory), name)


def _as_file(fd: int, name: str) -> BinaryIO:
    try:
        _need_file(os.fstat(fd), name)
    except FileError:
        os.close(fd)
        raise
    return os.fdopen(fd, "rb", buffering=0)


def _read_up_to(file: BinaryIO, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := file.read(min(limit, _PIECE))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _need_file(info: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise Unfit(f"{_shown(name)} is a directory.")
    if not stat.S_ISREG(info.st_mode):
        raise Unfit(f"{_shown(name)} is not a regular file.")


def _version(info: os.stat_result) -> Version:
    return Version(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


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


def _shown(path: str) -> str:
    return repr(path) if len(path) <= 200 else f"{path[:200]!r}…"


_SENTENCES: dict[int, tuple[type[FileError], str]] = {
    errno.ENOENT: (Absent, "{} does not exist."),
    errno.ENOTDIR: (Unfit, "{}: a part of the path is not a directory."),
    errno.EISDIR: (Unfit, "{} is a directory."),
    errno.ENXIO: (Unfit, "{} is not a regular file."),
    errno.ENODEV: (Unfit, "{} is not a regular file."),
    errno.EXDEV: (Outside, "{} leads out of the workspace."),
    errno.ELOOP: (Outside, "{} goes through a symbolic link that may not be followed here."),
    errno.EACCES: (FileError, "{} may not be used: the system denies it."),
    errno.EPERM: (FileError, "{} may not be used: the system denies it."),
    errno.ENAMETOOLONG: (Unfit, "{}: the name is too long."),
    errno.EILSEQ: (Unfit, "{}: the file system has no such names."),
    errno.ENOSPC: (FileError, "{} was not written: the disk is full."),
    errno.EDQUOT: (FileError, "{} was not written: the quota is used up."),
    errno.EROFS: (FileError, "{} was not written: the file system is read-only."),
    errno.EFBIG: (FileError, "{} was not written: it is larger than files may be."),
}


@contextlib.contextmanager
def _told(name: str) -> Generator[None]:
    """Translate what the system says into a `FileError`."""
    try:
        yield
    except OSError as error:
        kind, sentence = _SENTENCES.get(error.errno or 0, (FileError, "{}: " + f"{error.strerror or error}."))
        raise kind(sentence.format(_shown(name))) from error
    except UnicodeEncodeError as error:
        raise Unfit(f"{_shown(name)} cannot be a file name.") from error


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
        probe = os.open("/", _DIRECTORY)
        try:
            os.close(confined(probe, ".", _DIRECTORY))
        finally:
            os.close(probe)
    except OSError:
        return None
    return confined
