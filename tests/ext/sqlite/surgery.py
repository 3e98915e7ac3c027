"""What can happen to a store's files, done on purpose."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from operant.ext.sqlite.store import SqliteStore
from operant.kit.sqlite import Row, open_database

Opener = Callable[[], AbstractAsyncContextManager[SqliteStore]]


def query(state: Path, sql: str, *values: Any) -> list[Row]:
    """Run a statement through a connection of its own, as a stranger would."""
    connection = open_database(str(state / "operant.db"))
    try:
        connection.set_busy_timeout(2_000)
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def commits(state: Path) -> int:
    """Return how many transactions a store has made."""
    return int(query(state, "SELECT value FROM meta WHERE key = 'commits'")[0][0])


def crashed_copy(state: Path, target: Path) -> Path:
    """Copy the files of an open store, as a crash would leave them."""
    shutil.copytree(state, target)
    return target


def flip(path: Path, offset: int) -> None:
    """Change one byte."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x5A]))


def find(path: Path, words: bytes) -> int:
    """Return where some bytes stand in a file."""
    place = path.read_bytes().find(words)
    assert place >= 0, f"{words!r} is not in {path.name}"
    return place


def cut(path: Path, size: int) -> None:
    """Shorten a file."""
    os.truncate(path, size)


def zero(path: Path, start: int) -> None:
    """Overwrite the rest of a file with zeros."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(size - start))
