"""A server that is a program of this machine: its words and ours go over pipes, its complaints into a short memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from operant.ext.mcp.declared import Declared
from operant.kit.background import Background, started
from operant.kit.proc import CannotStart
from operant.sdk import Host, Unavailable

MOST_LINE = 16 * 1024 * 1024
"""Bytes of one message; a longer one ends the connection."""
LEAVE_S = 2.0
_SAID = 2_000
_PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip
"""What every program needs to find itself; anything else it gets by name, so that it sees no key of ours."""


class _Start(NamedTuple):
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    contained: bool = False
    fds: tuple[int, ...] = ()


class Complaints:
    """The end of what a program says beside its messages."""

    def __init__(self) -> None:
        self._said = b""

    def take(self, data: bytes) -> None:
        """Hear more."""
        self._said = (self._said + data)[-_SAID:]

    @property
    def last(self) -> str:
        """Return its last line."""
        lines = self._said.decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""


def environment(server: Declared, host: Host) -> dict[str, str]:
    """Return all that a server's program has of variables."""
    passed = {name: value for name in _PASSED if (value := host.variable(name)) is not None}
    return {**passed, **{name: one.reveal() for name, one in server.settings.env.items()}}


@asynccontextmanager
async def talking(
    server: Declared, host: Host, complaints: Complaints, gone: Callable[[], None]
) -> AsyncGenerator[Any]:
    """Run a server's program and yield the two streams that the SDK wants; on leaving it is gone with all its tree.

    `gone` is called when it stops talking by itself.
    """
    with contextlib.ExitStack() as theirs:
        in_read, in_write = _pipe(theirs, 0)
        out_write, out_read = reversed(_pipe(theirs, 1))
        settings = server.settings
        # Our pipes in the place of the input and output that the runner gives it; complaints stay the runner's.
        shell = f'exec "$@" <&- >&- </dev/fd/{in_read} >/dev/fd/{out_write}'
        start = _Start(
            argv=("/bin/sh", "-c", shell, "sh", settings.command, *settings.args),
            cwd=_home_of(settings.cwd) or host.home,
            env=environment(server, host),
            fds=(in_read, out_write),
        )
        try:
            program = await started(start, complaints.take)
        except CannotStart as error:
            os.close(in_write)
            os.close(out_read)
            raise Unavailable(str(error)) from error
    try:
        async with _streams(gone, in_write, out_read) as streams:
            yield streams
    finally:
        await _leave(program)


def _home_of(cwd: str) -> str:
    return str(Path(cwd).expanduser()) if cwd else ""


def _pipe(theirs: contextlib.ExitStack, ours: int) -> tuple[int, int]:
    """Make a pipe (reading, writing) of which the program's end is closed here once it has started."""
    ends = os.pipe()
    theirs.callback(os.close, ends[ours])
    return ends


async def _leave(program: Background) -> None:
    """Wait a moment for a program whose input has ended, then end it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LEAVE_S):
            await program.exited.wait()
    await program.end()


@asynccontextmanager
async def _streams(gone: Callable[[], None], in_write: int, out_read: int) -> AsyncGenerator[Any]:
    from anyio import create_memory_object_stream
    from mcp.shared.message import SessionMessage

    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MOST_LINE)
    incoming, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out_read, "rb", buffering=0)
    )
    outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(in_write, "wb", 0))
    writer = asyncio.StreamWriter(outgoing, protocol, None, loop)
    heard, hear = create_memory_object_stream[SessionMessage | Exception](0)
    say, said = create_memory_object_stream[SessionMessage](0)
    with contextlib.ExitStack() as ends:
        for end in (heard, hear, say, said, incoming, writer):
            ends.callback(end.close)
        async with asyncio.TaskGroup() as group, _cancelled(group, _listen(reader, heard, gone), _speak(said, writer)):
            yield hear, say


@asynccontextmanager
async def _cancelled(group: asyncio.TaskGroup, *work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Do some work in a group for as long as the context is open."""
    tasks = [group.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def _listen(reader: asyncio.StreamReader, heard: Any, gone: Callable[[], None]) -> None:
    """Hand on one message a line until the program has no more to say; a line that is too long is the end."""
    from anyio import BrokenResourceError, ClosedResourceError

    with contextlib.suppress(BrokenResourceError, ClosedResourceError):
        async with heard:
            while line := await _line(reader):
                await heard.send(_message(line))
            gone()


def _message(line: bytes) -> Any:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:  # some programs print what is no message; the SDK is told, and goes on
        return ValueError("a line that is no message")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError:
        return b""


async def _speak(said: Any, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        async with said:
            async for one in said:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()
