"""Files that a person edits: read whole or not at all, and known again by what changes when they do."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from operant.kernel.errors import Invalid

MOST_BYTES = 256 * 1024

Print = tuple[int, int, int] | None
"""What changes when a file does: time of change, size and inode; None for no file."""


def fingerprint(path: Path) -> Print:
    """Return what tells a file from the one that it was."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def read_plain(path: Path, *, follow: bool) -> str:
    """Read a plain file; what is missing or empty is an empty text. Raises `Invalid`.

    `follow` a link only where the agent cannot put one: in its workspace a link must not bring other files into its
    prompt.
    """
    no_link = 0 if follow else getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, os.O_RDONLY | no_link | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise Invalid(f"{path.name} cannot be read: {error.strerror}") from error
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Invalid(f"{path.name} is not a plain file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Invalid(f"{path.name} is larger than {MOST_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"{path.name} is not UTF-8 text (byte {error.start})") from error
