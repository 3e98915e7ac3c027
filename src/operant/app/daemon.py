"""The socket of a running system: syscalls as JSON-RPC, events and deltas as notifications.

A request is `{"jsonrpc": "2.0", "id": 1, "method": "session.get", "params": {...}}` on one line.
`kernel.events` opens a subscription under the id of its request: notifications `event` and `delta` follow until
`cancel` names that id.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec

from operant.app.build import DRAIN_S, Options, System, running
from operant.app.home import Home
from operant.kernel.errors import Broken, Invalid, NotFound, OperantError, Unavailable
from operant.kernel.kernel import Kernel
from operant.kernel.records import OWNER, Event, Record
from operant.kit.endpoint import greeting, listen, same_user
from operant.kit.jsonrpc import (
    INVALID_REQUEST,
    LONGEST,
    METHOD_NOT_FOUND,
    OURS,
    PARSE_ERROR,
    ErrorData,
    Failure,
    Fault,
    Request,
    Result,
    encode,
    read_request,
)

FOLLOW = "kernel.events"
CANCEL = "cancel"
AT_ONCE = 256
"""Requests and subscriptions that one connection may have open; more are refused."""
SLOW_S = 30.0
"""Seconds that a reader may leave its socket full before it is let go."""

_log = logging.getLogger("operant.socket")


class Follow(Record):
    """Parameters of `kernel.events`; see `Client.follow`. The subscription has the id of the request."""

    session: str = ""
    after: int = -1


class Cancel(Record):
    """Parameters of `cancel`: the id of the request or subscription to end."""

    id: int | str


@asynccontextmanager
async def hosted(home: Home, chosen: Options) -> AsyncGenerator[System]:
    """Run a system and let the other programs of this user use it while the context is open."""
    async with running(home, chosen) as system, _serving(home, system.kernel):
        yield system
        left = await system.kernel.drain(DRAIN_S)
        if left:
            _log.warning("%d turns did not end in %g s; they go on at the next start", left, DRAIN_S)


@asynccontextmanager
async def _serving(home: Home, kernel: Kernel) -> AsyncGenerator[None]:
    try:
        listening = listen(home.socket)
        hello = greeting(home.socket)
    except OSError as error:
        raise Unavailable(
            f"The socket {home.socket} cannot be made: {error}.", "Is the disk full or read-only?"
        ) from error
    try:
        async with Desk(kernel, hello) as desk:
            server = await asyncio.start_server(desk.welcome, sock=listening, limit=LONGEST)
            try:
                yield
            finally:
                server.close()
    finally:
        home.socket.unlink(missing_ok=True)


class Desk:
    """Receives connections; each is served by a task of its own. At the end it hangs up on everybody."""

    def __init__(self, kernel: Kernel, hello: bytes) -> None:
        self._kernel = kernel
        self._hello = hello
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def __aenter__(self) -> Desk:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection of a process of this user; others are hung up on."""
        if self._closed:  # it was accepted in the moment of closing
            writer.close()
            return
        connection: socket.socket = writer.get_extra_info("socket")
        if not self._hello and not same_user(connection):
            _log.warning("a process of another user was refused")
            writer.close()
            return
        task = self._group.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._hello and await reader.readline() != self._hello:
                return
            await Line(self._kernel, reader, writer).run()
        except* (OSError, TimeoutError) as lost:
            _log.info("a connection was lost: %s", lost.exceptions[0])
        finally:
            writer.close()


class Line:
    """One connection: its requests run side by side, its answers go out whole."""

    def __init__(self, kernel: Kernel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._kernel = kernel
        self._reader = reader
        self._writer = writer
        self._sending = asyncio.Lock()
        self._open: dict[int | str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Answer until the other side hangs up."""
        async with asyncio.TaskGroup() as group:
            while line := await self._read():
                await self._take(line, group)
            for task in self._open.values():
                task.cancel()

    async def _read(self) -> bytes:
        try:
            return await self._reader.readline()
        except ValueError:
            sentence = f"A message may be at most {LONGEST} bytes long."
            await self._fail(None, INVALID_REQUEST, Invalid(sentence))
            return b""

    async def _take(self, line: bytes, group: asyncio.TaskGroup) -> None:
        try:
            request = read_request(line)
        except msgspec.ValidationError as error:
            await self._fail(None, INVALID_REQUEST, Invalid(f"This is not a request: {error}."))
            return
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            await self._fail(None, PARSE_ERROR, Invalid(f"This is not JSON: {error}."))
            return
        if request.method == CANCEL:
            await self._cancel(request)
        elif request.id is None or request.id in self._open:
            await self._fail(request.id, INVALID_REQUEST, Invalid("A request needs an id of its own."))
        elif len(self._open) >= AT_ONCE:
            await self._fail(request.id, OURS, Unavailable(f"{AT_ONCE} requests are open on this connection."))
        else:
            self._open[request.id] = group.create_task(self._handle(request))

    async def _cancel(self, request: Request) -> None:
        """End a request or a subscription; answered at once, also when there is nothing to end."""
        try:
            wanted = msgspec.convert(request.params, Cancel).id
        except msgspec.ValidationError as error:
            await self._fail(request.id, INVALID_REQUEST, Invalid(f"The parameters of cancel do not fit: {error}."))
            return
        task = self._open.get(wanted)
        if task:
            task.cancel()
        if request.id is not None:
            await self._send(Result(id=request.id, result=task is not None))

    async def _handle(self, request: Request) -> None:
        work = self._follow(request) if request.method == FOLLOW else self._call(request)
        try:
            # What goes wrong comes back as a value: a fault of ours ends one request, not the process.
            (fault,) = await asyncio.gather(work, return_exceptions=True)
        finally:
            if request.id is not None:
                self._open.pop(request.id, None)
        if isinstance(fault, OSError | TimeoutError):
            raise fault
        if isinstance(fault, OperantError):
            await self._fail(request.id, OURS, fault)
        elif fault is not None:
            _log.error("%s failed", request.method, exc_info=fault)
            await self._fail(request.id, OURS, Broken(f"{request.method} failed with {type(fault).__name__}."))

    async def _call(self, request: Request) -> None:
        try:
            call = self._kernel.syscalls.decode(request.method, request.params)
        except NotFound as error:
            await self._fail(request.id, METHOD_NOT_FOUND, error)
            return
        await self._send(Result(id=request.id, result=await self._kernel.call(OWNER, call)))

    async def _follow(self, request: Request) -> None:
        try:
            wanted = msgspec.convert(request.params or {}, Follow)
        except msgspec.ValidationError as error:
            raise Invalid(f"The parameters of {FOLLOW} do not fit: {error}.") from error
        await self._send(Result(id=request.id, result={"subscription": request.id}))
        async with aclosing(self._kernel.follow(wanted.session, wanted.after)) as seen:
            async for one in seen:
                kind = "event" if isinstance(one, Event) else "delta"
                await self._send(Request(method=kind, params={"subscription": request.id, kind: one}))

    async def _fail(self, id: int | str | None, code: int, error: OperantError) -> None:
        data = ErrorData(code=error.code, hint=error.hint)
        await self._send(Failure(id=id, error=Fault(code=code, message=error.sentence, data=data)))

    async def _send(self, message: Any) -> None:
        """Write one line; a reader that does not read holds up its own connection, and then loses it."""
        line = encode(message)
        async with self._sending:
            self._writer.write(line)
            async with asyncio.timeout(SLOW_S):
                await self._writer.drain()
