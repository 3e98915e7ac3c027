"""What can be done with the handle of a directory, and how it is told when it cannot be done.

`beneath.py` decides where a path leads; here is what happens there. Nothing here follows a link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from typing import BinaryIO, NamedTuple

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PIECE = 1 << 20
_NOREPLACE = 1  # RENAME_NOREPLACE


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


NOTHING = Version(0, 0, 0, 0, 0)
"""The state of what is not there: expected by those who make a new file and replace none."""


def replace_file(
    directory: int, last: str, shown: str, data: bytes, expect: Version | None = None, mode: int | None = None
) -> None:
    """Put a whole file in a name's place, durably; `mode` are the permissions of a new one. Raises what forbids it."""
    there = mode_of_target(directory, last, shown)
    if expect == NOTHING and there is not None:
        raise Changed(f"{shown_name(shown)} is there already.")
    if expect not in (None, NOTHING) and there is None:
        raise Changed(f"{shown_name(shown)} is gone since it was read.")
    mode = mode if there is None else there
    temporary = f".{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=directory)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(fd, mode & 0o777)
            os.fsync(fd)
        _need_state(directory, last, shown, expect)
        _settle(directory, temporary, last, new=expect == NOTHING)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)


def remove_file(directory: int, last: str, shown: str, expect: Version | None) -> None:
    """Remove a file, durably. Raises what forbids it."""
    if mode_of_target(directory, last, shown) is None:
        raise Absent(f"{shown_name(shown)} does not exist.")
    _need_state(directory, last, shown, expect)
    os.unlink(last, dir_fd=directory)
    os.fsync(directory)


def _need_state(directory: int, last: str, shown: str, expect: Version | None) -> None:
    if expect not in (None, NOTHING) and version_of(os.lstat(last, dir_fd=directory)) != expect:
        raise Changed(f"{shown_name(shown)} changed since it was read.")


def _settle(directory: int, temporary: str, last: str, *, new: bool) -> None:
    """Give a finished file its name; a new one takes nobody's place, also where somebody was faster."""
    if not new or not _rename_without_replacing(directory, temporary, last):
        os.rename(temporary, last, src_dir_fd=directory, dst_dir_fd=directory)


def _rename_without_replacing(directory: int, temporary: str, last: str) -> bool:
    """Rename unless the name is taken; false where the system or the file system has no such thing."""
    import ctypes

    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(directory, os.fsencode(temporary), directory, os.fsencode(last), _NOREPLACE) == 0:
        return True
    if ctypes.get_errno() == errno.EEXIST:
        raise Changed(f"{shown_name(last)} is there already.")
    return False


def mode_of_target(directory: int, last: str, shown: str) -> int | None:
    """Return the permissions of what will be replaced, None where there is nothing. Raises what forbids it."""
    try:
        there = os.stat(last, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(there.st_mode):
        raise Outside(f"{shown_name(shown)} is a symbolic link; name the file that it stands for.")
    need_file(there, shown)
    if there.st_nlink > 1:
        raise Outside(f"{shown_name(shown)} has {there.st_nlink} names (hard links); it is not written through one.")
    return stat.S_IMODE(there.st_mode) & 0o777


def descend(fd: int, prefix: str, depth: int, skip: frozenset[str]) -> Iterator[tuple[Entry, int]]:
    """List what is below a handle, depth first by name, with the handle of its directory."""
    for entry in entries_of(fd, prefix):
        yield entry, fd
        name = entry.path[len(prefix) :]
        if entry.kind != "directory" or depth <= 1 or name in skip:
            continue
        try:
            below = os.open(name, DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        except OSError:
            continue  # unreadable, or no longer what it was
        try:
            yield from descend(below, f"{entry.path}/", depth - 1, skip)
        finally:
            os.close(below)


def entries_of(fd: int, prefix: str) -> list[Entry]:
    """List a directory by name."""
    found: list[Entry] = []
    with os.scandir(fd) as names:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found.append(entry_of(prefix + name.name, name.stat(follow_symlinks=False)))
    return sorted(found)


def entry_of(path: str, info: os.stat_result) -> Entry:
    """Make the entry of a name."""
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    return Entry(path, kinds.get(stat.S_IFMT(info.st_mode), "other"), info.st_size)


def open_here(directory: int, name: str) -> BinaryIO:
    """Open a file of a directory for reading. Raises `FileError`."""
    with told(name):
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        return as_file(os.open(name, flags, dir_fd=directory), name)


def as_file(fd: int, name: str) -> BinaryIO:
    """Make a file of a handle; anything but a regular one is refused, and closed."""
    try:
        need_file(os.fstat(fd), name)
    except FileError:
        os.close(fd)
        raise
    return os.fdopen(fd, "rb", buffering=0)


def read_up_to(file: BinaryIO, limit: int) -> bytes:
    """Read at most so many bytes."""
    pieces: list[bytes] = []
    while limit > 0 and (piece := file.read(min(limit, _PIECE))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def need_file(info: os.stat_result, name: str) -> None:
    """Raise `Unfit` unless it is a regular file."""
    if stat.S_ISDIR(info.st_mode):
        raise Unfit(f"{shown_name(name)} is a directory.")
    if not stat.S_ISREG(info.st_mode):
        raise Unfit(f"{shown_name(name)} is not a regular file.")


def version_of(info: os.stat_result) -> Version:
    """Return which state of a file this is."""
    return Version(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def shown_name(path: str) -> str:
    """Return a name as it is shown: quoted, and not endless."""
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
def told(name: str) -> Generator[None]:
    """Translate what the system says into a `FileError`."""
    try:
        yield
    except OSError as error:
        kind, sentence = _SENTENCES.get(error.errno or 0, (FileError, "{}: " + f"{error.strerror or error}."))
        raise kind(sentence.format(shown_name(name))) from error
    except UnicodeEncodeError as error:
        raise Unfit(f"{shown_name(name)} cannot be a file name.") from error
