"""Which processes came of a process, as the system has them now. Linux only; elsewhere nobody has children."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def descendants(pid: int, most: int = 100_000) -> list[int]:
    """Return the processes below one, not itself; no more than about `most`."""
    found: list[int] = []
    pending = [pid]
    while pending and len(found) <= most:
        children = tuple(_children(pending.pop()))
        found += children
        pending += children
    return found


def inside(keeper: int) -> list[int]:
    """Return the processes in a sandbox: `keeper` started it, and its child is the sandbox's first process."""
    return [pid for first in _children(keeper) for pid in descendants(first)]


def signal_each(pids: list[int], number: int) -> None:
    """Signal processes; those that have ended meanwhile are passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def signal_group(pid: int, number: int) -> None:
    """Signal the group of a process; nothing happens when it has ended, or on Windows."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def resident_bytes(pids: list[int]) -> int:
    """Return the memory that processes hold themselves, not counting what they share."""
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    return page * sum(_own_pages(pid) for pid in pids)


def _own_pages(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[1]) - int(fields[2])


def _children(pid: int) -> Iterator[int]:
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - called for every process of a sandbox, often
            yield from map(int, Path(f"/proc/{pid}/task/{task}/children").read_text("ascii").split())
    except (FileNotFoundError, ProcessLookupError):
        return
