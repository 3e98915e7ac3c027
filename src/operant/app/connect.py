"""A way to the system of a home, whoever runs it: this process when nobody else does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from operant.app.build import Options, options
from operant.app.daemon import hosted
from operant.app.home import Home, Occupied
from operant.kernel.errors import NotFound, OperantError, Unavailable
from operant.kernel.kernel import Kernel
from operant.kernel.records import OWNER, Delta, Event, MessageReceived, TurnEnded
from operant.kernel.syscalls import Dispatched, SessionDispatch, SessionGet, Syscall
from operant.kit.clock import SystemClock
from operant.kit.endpoint import NobodyThere, dial
from operant.sdk.client import Client
from operant.sdk.local import LocalClient
from operant.sdk.remote import Gone, Lost, RemoteClient

R = TypeVar("R")

WAIT_S = 20.0
"""How long to wait for a system that holds the home but does not answer: it starts, or it is stopping."""
_LOOK_S = 0.02
_LATELY = 500
"""Events in which a message is looked for that was accepted a moment ago."""

_log = logging.getLogger("operant.connect")


async def connect(home: Home, chosen: Options | None = None) -> Link:
    """Reach the system of a home, or run one in this process until `close`.

    Call `close` from the same task. Raises `Unavailable` when a system holds the home and does not answer, and what
    `running` raises when it has to start one.
    """
    link = Link(home, chosen or options())
    await link.open()
    return link


async def outcome(client: Client, dispatched: Dispatched) -> Event:
    """Wait for the end of the turn that handles a message and return its `turn.ended`.

    Raises `Unavailable` when the system stopped and no other could be found; the turn goes on at the next start.
    """
    after = await _before(client, dispatched)
    turn = None
    async with aclosing(client.follow(dispatched.session, after)) as seen:
        async for one in seen:
            if not isinstance(one, Event):
                continue
            if isinstance(one.body, MessageReceived) and one.body.inbox_id == dispatched.inbox_id:
                turn = one.turn
            if isinstance(one.body, TurnEnded) and one.turn == turn:
                return one
    raise Unavailable("The system stopped before the turn ended.", "It goes on at the next start.")


class Link:
    """A `Client` that finds another way when the one it has is lost: to who took the home over, or in this process.

    A call is made again by itself when it cannot have been carried out, when it only reads, and when it is a message
    with an external id, which is taken once. Any other raises `Lost`.
    """

    def __init__(self, home: Home, chosen: Options) -> None:
        self._home = home
        self._chosen = chosen
        self._clock = chosen.clock or SystemClock()
        self._group = asyncio.TaskGroup()
        self._changing = asyncio.Lock()
        self._client: Client | None = None
        self._guest: _Guest | None = None

    async def open(self) -> None:
        """Find the first way."""
        await self._group.__aenter__()
        try:
            self._client = await self._find()
        except BaseException:
            await self._group.__aexit__(None, None, None)
            raise

    @property
    def hosting(self) -> bool:
        """Tell whether the system runs in this process."""
        return self._guest is not None

    async def call(self, call: Syscall[R]) -> R:
        """Make a syscall. Raises the kernel's errors, and `Lost` when nobody knows whether it was carried out."""
        client = self._usable()
        try:
            return await client.call(call)
        except Lost as lost:
            client = await self._another(client)
            if not (isinstance(lost, Gone) or _repeatable(call)):
                raise
        return await client.call(call)

    async def follow(self, session: str = "", after: int = -1) -> AsyncGenerator[Event | Delta, None]:
        """Yield events and deltas, across a change of the system that brings them."""
        last = await _end_of(self, session) if session and after < 0 else after
        while True:
            client = self._usable()
            seen = client.follow(session, last)
            try:
                async for one in seen:
                    last = one.seq if session and isinstance(one, Event) else last
                    yield one
                return
            except Lost:
                await self._another(client)
            finally:
                await seen.aclose()

    async def close(self) -> None:
        """Let go; a system in this process drains for a while and ends."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        if self._guest is not None:
            await self._guest.leave()
        await self._group.__aexit__(None, None, None)

    def _usable(self) -> Client:
        if self._client is None:
            raise Unavailable("This connection is closed.")
        return self._client

    async def _another(self, lost: Client) -> Client:
        async with self._changing:
            if self._client is lost:
                _log.info("the system went away; looking for another")
                await lost.close()
                self._client = await self._find()
            return self._usable()

    async def _find(self) -> Client:
        until = self._clock.monotonic() + WAIT_S
        while True:
            remote = await self._dial()
            if remote is not None:
                return remote
            try:
                return await self._host()
            except Occupied as occupied:
                if self._clock.monotonic() > until:
                    raise Unavailable(
                        f"{occupied.sentence} It does not answer on its socket.", "Look into its log."
                    ) from occupied
            # Another process starts or ends: nothing tells when it is ready but its socket.
            await self._clock.sleep(_LOOK_S)

    async def _dial(self) -> RemoteClient | None:
        try:
            remote = await RemoteClient.over(dial(self._home.socket))
        except NobodyThere:
            return None
        except OSError as error:
            raise Unavailable(f"The socket {self._home.socket} cannot be used: {error}.") from error
        self._group.create_task(remote.run())
        return remote

    async def _host(self) -> Client:
        guest = _Guest(self._home, self._chosen)
        self._group.create_task(guest.live())
        kernel = await guest.settled()
        self._guest = guest
        return LocalClient(lambda: kernel, OWNER)


class _Guest:
    """A system that lives in a task of this process."""

    def __init__(self, home: Home, chosen: Options) -> None:
        self._home = home
        self._chosen = chosen
        self._ready: asyncio.Future[Kernel] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._gone = asyncio.Event()

    async def live(self) -> None:
        try:
            async with hosted(self._home, self._chosen) as system:
                self._ready.set_result(system.kernel)
                await self._leave.wait()
        except OperantError as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)
        finally:
            self._ready.cancel()
            self._gone.set()

    async def settled(self) -> Kernel:
        return await self._ready

    async def leave(self) -> None:
        self._leave.set()
        await self._gone.wait()


async def _before(client: Client, dispatched: Dispatched) -> int:
    """Return a seq before the one at which a message enters, or has entered, its session's history."""
    if dispatched.repeat:
        return 0
    end = await _end_of(client, dispatched.session)
    return max(0, end - _LATELY)


async def _end_of(client: Client, session: str) -> int:
    """Return the seq of a session's last event; 0 for a session that does not exist yet."""
    try:
        return (await client.call(SessionGet(session=session))).events
    except NotFound:
        return 0


def _repeatable(call: Syscall[R]) -> bool:
    if isinstance(call, SessionDispatch):
        return bool(call.external_id)
    return call.capability.endswith(".read")
