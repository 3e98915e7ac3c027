"""The one subprocess runner: a program with its whole tree, a deadline, and an output that cannot grow over our head.

A program gets a session of its own, no terminal and no standard input; what it says on both streams arrives in the
order it was said. When it ends, runs out of time or is cancelled, everything that it started ends too: on Linux by a
warden process (see `warden.py`) or by a sandbox (`contained`), which also do this when we are killed; on other POSIX
systems as far as its process group goes. Windows: the program itself only, and that is untried.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast

from operant.kit.family import inside, signal_each, signal_group

GRACE_S = 0.3
_SETTLE_S = 0.5
_DRAIN_S = 0.2
_WARDEN = str(Path(__file__).with_name("warden.py"))


class CannotStart(Exception):
    """Say in one sentence why a program did not start."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a program's output is kept and shown, and what its processes may use.

    `memory_bytes` of the beginning and as much of the end stay in memory; more goes to an unnamed temporary file up
    to `spool_bytes`; the rest is only counted. `rlimits` are pairs of a `resource.RLIMIT_*` number and a value, set
    where there is a warden.
    """

    memory_bytes: int = 64 * 1024
    spool_bytes: int = 16 * 1024 * 1024
    live_bytes: int = 256 * 1024
    rlimits: tuple[tuple[int, int], ...] = ((4, 0),)  # RLIMIT_CORE: no core dumps in a workspace


def rlimits(*, memory_bytes: int, cpu_s: int, file_bytes: int = 0) -> tuple[tuple[int, int], ...]:
    """Return limits of a program's processes, for `Limits.rlimits`; none where the system has no such thing."""
    try:
        import resource
    except ImportError:  # Windows
        return ()
    files = ((resource.RLIMIT_FSIZE, file_bytes),) if file_bytes else ()
    return ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CPU, cpu_s), *files)


class Captured:
    """What a program said, bounded in memory."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._head = bytearray()
        self._tail = bytearray()
        self._spool: IO[bytes] | None = None
        self.kept = 0
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self.total += len(data)
        room = self._limits.memory_bytes
        if self.total <= room:
            self._head += data
            return
        if self._spool is None and self._limits.spool_bytes:
            self._open_spool()
        if len(self._head) < room:
            self._head += data[: room - len(self._head)]
        self._tail += data[-room:]
        if len(self._tail) > 2 * room:
            del self._tail[:-room]
        self._keep(data)

    @property
    def cut(self) -> bool:
        """Tell whether memory holds only the beginning and the end."""
        return self.total > self._limits.memory_bytes

    @property
    def head(self) -> str:
        """Return the beginning, or all when it is not cut."""
        return self._head.decode("utf-8", "replace")

    @property
    def tail(self) -> str:
        """Return the end of an output that is cut."""
        return self._tail[-self._limits.memory_bytes :].decode("utf-8", "replace")

    def whole(self) -> bytes:
        """Return all that was kept; reads the temporary file, so call it off the loop."""
        if self._spool is None:
            return bytes(self._head)
        self._spool.seek(0)
        return self._spool.read()

    def close(self) -> None:
        """Let go of the temporary file."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def _open_spool(self) -> None:
        try:
            self._spool = cast("IO[bytes]", tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - closed by close()
        except OSError:
            self._limits = _without_spool(self._limits, 0)
        self._keep(bytes(self._head))

    def _keep(self, data: bytes) -> None:
        room = self._limits.spool_bytes - self.kept
        if self._spool is None or room <= 0:
            return
        try:
            self.kept += self._spool.write(data[:room])
        except OSError:  # a full disk: what stands in memory is still shown
            self._limits = _without_spool(self._limits, self.kept)


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended; `code` is None when signal number `signal` ended it. Close `output` when done with it."""

    code: int | None
    signal: int
    timed_out: bool
    output: Captured
    duration_s: float


class Start(Protocol):
    """What is started: `env` is its whole environment, `fds` are handles that it inherits under their numbers.

    A `contained` program is a sandbox with a process namespace: its whole tree dies with it, and it with us.
    """

    @property
    def argv(self) -> Sequence[str]: ...
    @property
    def cwd(self) -> str: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def contained(self) -> bool: ...
    @property
    def fds(self) -> Sequence[int]: ...


class Plain(NamedTuple):
    """A program without a sandbox."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    contained: bool = False
    fds: Sequence[int] = ()


async def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float,
    on_output: Callable[[str], None] | None = None,
    limits: Limits | None = None,
) -> Finished:
    """Launch a program that has no sandbox; see `launch`."""
    return await launch(Plain(argv, cwd, env), timeout_s=timeout_s, on_output=on_output, limits=limits)


async def launch(
    start: Start, *, timeout_s: float, on_output: Callable[[str], None] | None = None, limits: Limits | None = None
) -> Finished:
    """Run a program to its end or its deadline; on return, and on cancellation, nothing of it is left.

    `on_output` gets its words as they come, up to `live_bytes`. Raises `CannotStart`.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    limits = limits or Limits()
    output = Captured(limits)
    try:
        program = _Program(output, _Live(on_output, limits.live_bytes), start.contained)
        await _start(program, start, limits)
        try:
            done, _ = await asyncio.wait({program.exited}, timeout=timeout_s)
        finally:
            await program.end()
        code, number = program.outcome()
    except BaseException:
        output.close()
        raise
    return Finished(code, number, not done, output, loop.time() - begun)


async def _start(program: _Program, start: Start, limits: Limits) -> None:
    pipe = subprocess.PIPE
    argv = list(start.argv)
    if program.warded:
        rlimits = ",".join(f"{which}:{value}" for which, value in limits.rlimits)
        argv = [sys.executable, "-I", "-S", _WARDEN, rlimits, *argv]
    try:
        await asyncio.get_running_loop().subprocess_exec(
            lambda: program,
            *argv,
            stdin=pipe if program.warded else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe if program.warded else subprocess.STDOUT,
            cwd=start.cwd,
            env=dict(start.env),
            start_new_session=True,
            pass_fds=tuple(start.fds),
        )
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotStart(f"{argv[0]} could not be started in {start.cwd}: {words}.") from error


class _Live:
    """Hand on the words of a program while it runs, up to a bound."""

    def __init__(self, show: Callable[[str], None] | None, room: int) -> None:
        self._show = show
        self._room = room
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        if self._show is None or self._room <= 0:
            return
        if words := self._decoder.decode(data[: self._room]):
            self._show(words)
        self._room -= len(data)
        if self._room <= 0:
            self._show("\n[what follows is not shown while it runs]\n")


class _Program(asyncio.SubprocessProtocol):
    """One running program; `exited` is settled when it, or its warden with all of its tree, has ended."""

    def __init__(self, output: Captured, live: _Live, contained: bool) -> None:
        loop = asyncio.get_running_loop()
        self.warded = not contained and sys.platform == "linux" and hasattr(os, "pidfd_open")
        self._contained = contained
        self.exited: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._output = output
        self._live = live
        self._report = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self.warded and fd == 1:
            self._report += data[:256]
            return
        self._output.feed(data)
        self._live.feed(data)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closed.done():
            self._closed.set_result(None)

    async def end(self) -> None:
        """End what is left of the program; takes a second at most, and is not cut short by being cancelled again."""
        transport = self._transport
        if transport is None:
            return
        cancelled = await self._stop(transport) if not self.exited.done() else False
        self._end_group(transport)
        # Whoever still holds the output open does not hold us up.
        cancelled = await _outlast(self._closed, _DRAIN_S) or cancelled
        transport.close()
        cancelled = await _outlast(self._closed, _DRAIN_S) or cancelled
        if cancelled:
            raise asyncio.CancelledError

    async def _stop(self, transport: asyncio.SubprocessTransport) -> bool:
        """Order the end; true when we were cancelled meanwhile."""
        control = transport.get_pipe_transport(0)
        if self.warded and control is not None:
            cast("asyncio.WriteTransport", control).write(b"T")
            cancelled = await _outlast(self.exited, GRACE_S + _SETTLE_S)
        elif self._contained:  # the sandbox itself would end at once, and all in it with no time to tidy up
            signal_each(inside(transport.get_pid()), signal.SIGTERM)
            cancelled = await _outlast(self.exited, GRACE_S)
        else:
            signal_group(transport.get_pid(), signal.SIGTERM)
            cancelled = await _outlast(self.exited, GRACE_S)
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                transport.kill()
        return cancelled

    def _end_group(self, transport: asyncio.SubprocessTransport) -> None:
        """Kill the group where no warden did it, or where the warden did not live to do it."""
        words = self._report.split()
        if self._contained:
            return
        if not self.warded:
            signal_group(transport.get_pid(), signal.SIGKILL)
        elif words[:1] == [b"started"] and len(words) == 2:
            signal_group(int(words[1]), signal.SIGKILL)

    def outcome(self) -> tuple[int | None, int]:
        """Return exit code and signal. Raises `CannotStart`."""
        if not self.warded:
            code = self._transport.get_returncode() if self._transport else None
            return (None, signal.SIGKILL) if code is None else (None, -code) if code < 0 else (code, 0)
        lines = self._report.decode("ascii", "replace").splitlines()
        says = {word: int(number) for word, _, number in (line.partition(" ") for line in lines) if number}
        if "failed" in says:
            raise CannotStart(f"The program could not be started: {os.strerror(says['failed'])}.")
        if "exit" in says:
            return says["exit"], 0
        return None, says.get("signal", signal.SIGKILL)


async def _outlast(future: asyncio.Future[None], seconds: float) -> bool:
    """Wait for a future, also while cancelled; true when we were."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    cancelled = False
    while not future.done() and (left := deadline - loop.time()) > 0:
        try:
            await asyncio.wait({future}, timeout=left)
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


def _without_spool(limits: Limits, kept: int) -> Limits:
    return Limits(limits.memory_bytes, kept, limits.live_bytes, limits.rlimits)
