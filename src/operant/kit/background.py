"""Programs that run on beside everything else, with an input, a terminal if they want one, and an output to look into.

What holds for `proc.run` holds here: the whole tree dies with the program's keeper, also when we are killed. The
program is started by a warden (see `warden.py`) unless its sandbox is one. Windows: not there, and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from operant.kit.family import descendants, inside, signal_group
from operant.kit.proc import CannotStart, Start

GRACE_S = 0.5
_WARDEN = str(Path(__file__).with_name("warden.py"))
_RLIMITS = "4:0"  # RLIMIT_CORE: no core dumps in a workspace
_ROWS, _COLUMNS = 40, 120


CONTROLLING = ("setsid", "--ctty", "--wait")
"""What goes before a program that is to own the terminal that it is given."""


class Background:
    """One program; make it with `started`."""

    def __init__(self, contained: bool, warded: bool, on_output: Callable[[bytes], None]) -> None:
        self.exited = asyncio.Event()
        self.code: int | None = None
        self._contained = contained
        self._warded = warded
        self._on_output = on_output
        self._transport: asyncio.SubprocessTransport | None = None
        self._input = -1
        self._master = -1
        self._report = b""

    @property
    def pid(self) -> int:
        """Return the process id of the program's keeper."""
        return self._transport.get_pid() if self._transport else 0

    def write(self, data: bytes) -> int:
        """Write to the program's input and return how many bytes it took: none where nothing reads them."""
        handle = self._master if self._master >= 0 else self._input
        if self.exited.is_set() or handle < 0:
            return 0
        try:
            return os.write(handle, data)
        except OSError:  # full, or closed at the other end
            return 0

    def close_input(self) -> None:
        """End the program's input; a terminal has no end, there Ctrl-D is written."""
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def signal(self, number: int) -> bool:
        """Signal the program and all that it started; false when nothing is left."""
        groups = {_group(pid) for pid in self._family()} - {0, os.getpgid(0)}
        for group in groups:
            signal_group(group, number)
        return bool(groups)

    async def end(self) -> None:
        """End the program and all that it started: politely, then at once."""
        if not self.exited.is_set():
            self.signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.exited.wait(), GRACE_S)
        if not self.exited.is_set():
            self._kill()
            await self.exited.wait()
        self._close()

    # ------------------------------------------------------------------ what the event loop calls

    def connected(self, transport: asyncio.SubprocessTransport) -> None:
        """Take the process."""
        self._transport = transport

    def heard(self, fd: int, data: bytes) -> None:
        """Take what came over a pipe: the warden's report, or the program's words."""
        if self._warded and fd == 1:
            self._report += data[:256]
        else:
            self._on_output(data)

    def ended(self) -> None:
        """Note that the keeper has ended, and so the program with all of its tree."""
        self._drain()
        code = self._transport.get_returncode() if self._transport else None
        says = dict(line.split(" ", 1) for line in self._report.decode("ascii", "replace").splitlines() if " " in line)
        if self._warded:
            code = int(says["exit"]) if "exit" in says else -int(says.get("signal", signal.SIGKILL))
        self.code = -signal.SIGKILL if code is None else code
        self.exited.set()

    def take_terminal(self, master: int) -> None:
        """Read a terminal from now on."""
        self._master = master
        os.set_blocking(master, False)
        asyncio.get_running_loop().add_reader(master, self._drain)

    def take_input(self, handle: int) -> None:
        """Write to this from now on."""
        self._input = handle

    def _drain(self) -> None:
        while self._master >= 0:
            try:
                data = os.read(self._master, 65_536)
            except BlockingIOError:
                return
            except OSError:  # the last one has closed the terminal
                data = b""
            if not data:
                self._close_master()
                return
            self._on_output(data)

    def _family(self) -> list[int]:
        """Return the processes of the program; a sandbox and its first process, or the warden, are not of them."""
        if self.exited.is_set() or not self.pid:
            return []
        return inside(self.pid) if self._contained else descendants(self.pid)

    def _kill(self) -> None:
        if self._transport is None:
            return
        if not self._warded and not self._contained:
            self.signal(signal.SIGKILL)
        control = self._transport.get_pipe_transport(0) if self._warded else None
        if control is not None:
            control.close()  # the warden takes the end of its input for ours, and ends all at once
            return
        with contextlib.suppress(ProcessLookupError):
            self._transport.kill()

    def _close(self) -> None:
        self.close_input()
        self._close_master()
        if self._transport is not None:
            self._transport.close()

    def _close_master(self) -> None:
        if self._master >= 0:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            self._master = -1


async def started(start: Start, on_output: Callable[[bytes], None], *, terminal: bool = False) -> Background:
    """Start a program; with a terminal, its `argv` must begin with `CONTROLLING`. Raises `CannotStart`."""
    if sys.platform == "win32":
        raise CannotStart("Background programs are not there on Windows yet.")
    warded = not start.contained and sys.platform == "linux"
    program = Background(start.contained, warded, on_output)
    with contextlib.ExitStack() as ours:
        streams = _terminal(program, ours) if terminal else _pipe(program, ours)
        argv = list(start.argv)
        if warded:
            argv = [sys.executable, "-I", "-S", _WARDEN, _RLIMITS, *_redirected(argv, streams)]
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: _Listener(program),
                *argv,
                stdin=subprocess.PIPE if warded else streams.stdin,
                stdout=subprocess.PIPE if warded else streams.stdout,
                stderr=subprocess.PIPE if warded else (subprocess.STDOUT if streams.stdout < 0 else streams.stdout),
                cwd=start.cwd,
                env=dict(start.env),
                start_new_session=True,
                pass_fds=(*start.fds, *((streams.stdin,) if warded else ())),
            )
        except OSError as error:
            raise CannotStart(f"{start.argv[0]} could not be started in {start.cwd}: {error.strerror}.") from error
    return program


class _Streams(NamedTuple):
    stdin: int
    stdout: int


class _Listener(asyncio.SubprocessProtocol):
    def __init__(self, program: Background) -> None:
        self._program = program

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._program.connected(cast("asyncio.SubprocessTransport", transport))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._program.heard(fd, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._program.ended()


def _terminal(program: Background, ours: contextlib.ExitStack) -> _Streams:
    import fcntl
    import struct
    import termios

    master, slave = os.openpty()
    ours.callback(os.close, slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    program.take_terminal(master)
    return _Streams(slave, slave)


def _pipe(program: Background, ours: contextlib.ExitStack) -> _Streams:
    reading, writing = os.pipe()
    ours.callback(os.close, reading)
    os.set_blocking(writing, False)
    program.take_input(writing)
    return _Streams(reading, subprocess.PIPE)


def _redirected(argv: Sequence[str], streams: _Streams) -> list[str]:
    """Give a program behind a warden its own input: the warden's is the line on which we tell it to end."""
    handle = f"/proc/self/fd/{streams.stdin}"  # not `<&`: some shells know no handle of two digits
    both = f" >{handle} 2>&1" if streams.stdout >= 0 else ""
    return ["/bin/sh", "-c", f"exec {shlex.join(argv)} <{handle}{both}"]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0
