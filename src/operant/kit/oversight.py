"""Hold a sandbox to what it may use as a whole, and see it dead at the end.

Limits of a process do not bind what forks, and one on the number of a user's processes does not bind root. So the
sandbox is looked at: often enough that what grows without end is ended in well under a second. Linux only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from operant.kit.family import descendants, resident_bytes

_FIRST_S, _NEXT_S = 0.05, 0.1
_DEATH_S = 1.0


@dataclass(frozen=True, slots=True)
class Allotment:
    """What all processes of a sandbox may use together."""

    processes: int
    memory_bytes: int


class Oversight:
    """One sandbox: bubblewrap names its first process on the handle `report`."""

    def __init__(self, allotment: Allotment, on_breach: Callable[[str], None]) -> None:
        self._allotment = allotment
        self._on_breach = on_breach
        self._source, self.report = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._first = 0
        self._handle = -1
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Oversight:
        """Begin to watch."""
        self._again(_FIRST_S)
        return self

    async def __aexit__(self, *error: object) -> None:
        """Kill the sandbox if it still lives, and wait until nothing is left of it."""
        if self._timer is not None:
            self._timer.cancel()
        self._learn()
        try:
            if self._handle >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._handle, signal.SIGKILL)
                await _until_dead(self._handle)
        finally:
            for handle in (self._handle, self._source, self.report):
                if handle >= 0:
                    os.close(handle)

    def _again(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._learn()
        if self._handle >= 0:
            family = descendants(self._first, self._allotment.processes)
            if len(family) > self._allotment.processes:
                self._kill(f"more than {self._allotment.processes} processes")
            elif resident_bytes(family) > self._allotment.memory_bytes:
                self._kill(f"more than {self._allotment.memory_bytes // 2**20} MiB of memory")
        self._again(_NEXT_S)

    def _learn(self) -> None:
        """Take hold of the sandbox's first process; its number alone could soon be another's."""
        if self._handle >= 0:
            return
        with contextlib.suppress(BlockingIOError, ValueError, KeyError, OSError):
            first = int(json.loads(os.read(self._source, 4096))["child-pid"])
            handle = os.pidfd_open(first)
            if _is_first(first):
                self._first, self._handle = first, handle
            else:
                os.close(handle)

    def _kill(self, reason: str) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            self._on_breach(reason)


def _is_first(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines():
            if line.startswith("NSpid:"):
                return line.split()[-1] == "1"
    return False


async def _until_dead(handle: int) -> None:
    """Wait until a process has ended, with all of its namespace; that takes the kernel some milliseconds."""
    loop = asyncio.get_running_loop()
    dead = asyncio.Event()
    loop.add_reader(handle, dead.set)
    try:
        async with asyncio.timeout(_DEATH_S):
            await dead.wait()
    except TimeoutError:
        return  # it sits in a call of the kernel that nothing cuts short; it will not come out of it
    finally:
        loop.remove_reader(handle)
