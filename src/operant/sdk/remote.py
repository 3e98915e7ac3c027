"""Reach a running system through its socket."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import msgspec

from operant.kernel.errors import OperantError, Unavailable, by_code
from operant.kernel.records import Delta, Event, Record
from operant.kernel.syscalls import Syscall
from operant.kit.jsonrpc import Fault, Incoming, Request, encode, read_incoming
from operant.sdk.whole import whole

R = TypeVar("R")

_LONGEST = 1 << 30
"""Bytes of an answer, such as a whole exported session."""
_DELTAS = 1_000
"""Deltas that wait for a follower; more are dropped, events never are."""


class Lost(Unavailable):
    """Report that the system went away; what was asked may or may not have been done."""

    code = "lost"


class Gone(Lost):
    """Report that the system had gone away before anything was asked; nothing was done."""

    code = "gone"


class _Seen(Record):
    subscription: int
    event: Event | None = None
    delta: Delta | None = None


class RemoteClient:
    """A `Client` over a connected socket. `run` must be at work while it is used."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._last = 0
        self._lost = False
        self._answers: dict[int, asyncio.Future[Incoming]] = {}
        self._feeds: dict[int, _Feed] = {}

    @staticmethod
    async def over(connection: socket.socket) -> RemoteClient:
        """Make a client of a connected socket."""
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=_LONGEST)
        return RemoteClient(reader, writer)

    async def run(self) -> None:
        """Hand answers to those who wait for them, until the system goes away or `close`."""
        try:
            while line := await self._reader.readline():
                self._take(read_incoming(line))
        except (OSError, ValueError):
            self._writer.close()
        finally:
            self._hang_up()

    async def call(self, call: Syscall[R]) -> R:
        """Make a syscall. Raises the kernel's errors, and `Lost` when the system went away."""
        answer = await self._ask(type(call).call, whole(call))
        return msgspec.json.decode(answer.result, type=type(call).returns)

    async def follow(self, session: str = "", after: int = -1) -> AsyncGenerator[Event | Delta, None]:
        """Yield events and deltas; see `Client.follow`. Raises `Lost` when the system went away."""
        feed = _Feed()
        self._last += 1
        subscription = self._last
        self._feeds[subscription] = feed
        try:
            await self._ask("kernel.events", {"session": whole(session), "after": after}, subscription)
            while True:
                yield await feed.take()
        finally:
            self._feeds.pop(subscription, None)
            if not self._lost:
                self._write(Request(method="cancel", params={"id": subscription}))

    async def close(self) -> None:
        """Hang up."""
        self._hang_up()
        self._writer.close()

    async def _ask(self, method: str, params: Any, id: int = 0) -> Incoming:
        if self._lost:
            raise Gone("The system has gone away.", "Start it again, or connect anew.")
        if not id:
            self._last += 1
            id = self._last
        future = asyncio.get_running_loop().create_future()
        self._answers[id] = future
        try:
            self._write(Request(method=method, params=params, id=id))
            answer: Incoming = await future
        except asyncio.CancelledError:
            if not self._lost and method != "kernel.events":
                self._write(Request(method="cancel", params={"id": id}))
            raise
        finally:
            self._answers.pop(id, None)
        if answer.error is not None:
            raise _made(answer.error)
        return answer

    def _write(self, request: Request) -> None:
        self._writer.write(encode(request))

    def _take(self, message: Incoming) -> None:
        if message.method in ("event", "delta"):
            seen = msgspec.json.decode(message.params, type=_Seen)
            feed = self._feeds.get(seen.subscription)
            one = seen.event or seen.delta
            if feed and one:
                feed.push(one)
            return
        if not isinstance(message.id, int):
            return
        future = self._answers.get(message.id)
        if future and not future.done():
            future.set_result(message)
        elif message.error and message.id in self._feeds:
            self._feeds[message.id].end(_made(message.error))

    def _hang_up(self) -> None:
        self._lost = True
        for future in self._answers.values():
            if not future.done():
                future.set_exception(_lost())
        for feed in self._feeds.values():
            feed.end(_lost())


class _Feed:
    """What one follower has not seen yet."""

    def __init__(self) -> None:
        self._waiting: deque[Event | Delta] = deque()
        self._ready = asyncio.Event()
        self._end: OperantError | None = None

    def push(self, seen: Event | Delta) -> None:
        if isinstance(seen, Event) or len(self._waiting) < _DELTAS:
            self._waiting.append(seen)
            self._ready.set()

    def end(self, error: OperantError) -> None:
        self._end = self._end or error
        self._ready.set()

    async def take(self) -> Event | Delta:
        while not self._waiting:
            if self._end:
                raise self._end
            self._ready.clear()
            await self._ready.wait()
        return self._waiting.popleft()


def _lost() -> Lost:
    return Lost("The system went away before it answered.", "It may or may not have been done: look, then repeat.")


def _made(fault: Fault) -> OperantError:
    """Make the error that the other side raised."""
    return by_code(fault.data.code)(fault.message, fault.data.hint)
