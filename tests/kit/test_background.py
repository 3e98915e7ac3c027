"""Programs that run on: they are heard, written to, signalled, and nothing of them outlives its keeper."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from operant.kit.background import CONTROLLING, Background, started
from operant.kit.proc import CannotStart

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the warden is for Linux")
BWRAP = ("/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/")
CONTAINED = (*BWRAP, "--dev", "/dev", "--proc", "/proc")


class Launched(NamedTuple):
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    contained: bool
    fds: tuple[int, ...] = ()


class Ear:
    """What a program said, and a way to wait for words."""

    def __init__(self) -> None:
        self.data = b""
        self._more = asyncio.Event()

    def __call__(self, data: bytes) -> None:
        self.data += data
        self._more.set()

    async def hears(self, words: bytes) -> None:
        async with asyncio.timeout(10):
            while words not in self.data:
                self._more.clear()
                await self._more.wait()


@pytest.fixture(params=[False, True], ids=["warden", "sandbox"])
def contained(request: pytest.FixtureRequest) -> bool:
    if request.param and not os.access(BWRAP[0], os.X_OK):
        pytest.skip("bubblewrap is not installed: apt-get install bubblewrap")
    return request.param


async def run(folder: Path, script: str, contained: bool, *, terminal: bool = False) -> tuple[Background, Ear]:
    ear = Ear()
    inner = (*(CONTROLLING if terminal else ()), "/bin/bash", "-c", script)
    argv = (*CONTAINED, *inner) if contained else inner
    return await started(Launched(argv, str(folder), ENV, contained), ear, terminal=terminal), ear


@asynccontextmanager
async def running(
    folder: Path, script: str, contained: bool, *, terminal: bool = False
) -> AsyncIterator[tuple[Background, Ear]]:
    program, ear = await run(folder, script, contained, terminal=terminal)
    try:
        yield program, ear
    finally:
        await program.end()


async def gone(pids: list[int]) -> bool:
    async with asyncio.timeout(5):
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            await asyncio.sleep(0)
    return True


async def born(long: int, count: int) -> list[int]:
    """The ``count`` sleepers, once each of them is the program it was forked to become."""
    async with asyncio.timeout(10):
        while True:
            family = [
                int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and _is_ours(one.name, long)
            ]
            if len(family) >= count:
                return family
            await asyncio.sleep(0)


async def test_it_is_written_to_and_heard_and_ends_by_itself(tmp_path: Path, contained: bool) -> None:
    async with running(tmp_path, 'while read line; do echo "got $line"; done; echo bye >&2; exit 3', contained) as (
        program,
        ear,
    ):
        assert program.write(b"one\ntwo\n") == 8
        await ear.hears(b"got two")
        program.close_input()
        async with asyncio.timeout(10):
            await program.exited.wait()
        assert program.code == 3
        assert b"bye" in ear.data
        assert program.write(b"more") == 0


async def test_it_has_a_terminal_when_it_wants_one(tmp_path: Path, contained: bool) -> None:
    script = "tty -s && echo on a terminal; stty size; read line; echo got $line; read -r other; echo never"
    async with running(tmp_path, script, contained, terminal=True) as (program, ear):
        await ear.hears(b"40 120")
        assert b"on a terminal" in ear.data
        program.write(b"words\n")
        await ear.hears(b"got words")
        program.write(b"\x03")
        async with asyncio.timeout(10):
            await program.exited.wait()
        assert b"never" not in ear.data


async def test_signals_reach_it_and_what_it_started(tmp_path: Path, contained: bool) -> None:
    script = "trap 'echo caught; exit 7' USR1; sleep 1000 & echo ready; while :; do wait; done"
    async with running(tmp_path, script, contained) as (program, ear):
        await ear.hears(b"ready")
        assert program.signal(signal.SIGUSR1)
        await ear.hears(b"caught")
        async with asyncio.timeout(10):
            await program.exited.wait()
        assert program.code == 7
        assert not program.signal(signal.SIGUSR1)


async def test_nothing_outlives_its_end(tmp_path: Path, contained: bool) -> None:
    long = 7_000_000 + os.getpid()  # other tests sleep beside this one
    script = f"trap '' TERM; (setsid sleep {long} &) ; setsid sleep {long} & echo ready; sleep {long}"
    async with running(tmp_path, script, contained) as (program, ear):
        await ear.hears(b"ready")
        family = await born(long, 3)
        async with asyncio.timeout(4):
            await program.end()
        assert await gone(family)


def _is_ours(pid: str, long: int) -> bool:
    try:
        return b"sleep\x00%d" % long in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def test_what_cannot_start_says_so(tmp_path: Path) -> None:
    start = Launched(("/nowhere/program",), str(tmp_path / "no"), ENV, True)
    with pytest.raises(CannotStart, match="could not be started"):
        await started(start, Ear())
