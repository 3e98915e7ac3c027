"""Put messages between agents together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from operant.ext.a2a.arrivals import Arrivals
from operant.ext.a2a.courier import Courier
from operant.ext.a2a.desk import Desk
from operant.ext.a2a.door import Door
from operant.ext.a2a.incoming import Incoming
from operant.ext.a2a.letter import CHANNEL, Seals
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.listing import Listing
from operant.ext.a2a.post import Post, Ways
from operant.ext.a2a.remote import Remote
from operant.ext.a2a.settings import A2aSettings
from operant.ext.a2a.tools import SendTools
from operant.sdk import (
    DAEMON_STARTED,
    DISPATCH_BEFORE,
    TURN_ENDED,
    A2aList,
    A2aMessage,
    A2aSend,
    DispatchInput,
    Happened,
    Host,
    Principal,
    PullChannel,
)


@asynccontextmanager
async def setup(host: Host, settings: A2aSettings) -> AsyncGenerator[None]:
    """Carry messages between agents while the context is open."""
    letters, seals = Letters(host), Seals(Path(host.state))
    arrivals = Arrivals(host, letters, seals)
    courier = Courier(host, letters, Remote(host, settings.peers))
    post = Post(host, settings, letters, seals, Ways(arrivals.left, courier))
    desk = Desk(host, letters, seals)
    listing = Listing(host, letters)
    tools = SendTools(host, post, tuple(settings.peers), desk.sent)

    async def send(who: Principal, call: A2aSend) -> A2aMessage:
        sent = await post.send(who, call)
        desk.sent()
        return sent

    def arrived() -> None:
        desk.sent()
        listing.ring()

    async def ended(input: Happened) -> None:
        arrived()

    async def look(input: DispatchInput) -> None:
        tools.look()

    courier.arrived = arrived
    if settings.serve and host.serving:
        Door(host, settings.serve, Incoming(host, post, letters, seals), letters).mount()
    host.syscall(A2aSend, send)
    host.syscall(A2aList, listing.list)
    host.channel(PullChannel(CHANNEL))
    host.toolbox(tools)
    host.hook(DISPATCH_BEFORE, arrivals.checked, priority=1000)
    host.hook(DISPATCH_BEFORE, arrivals.refused, phase="validate", priority=1000)
    host.hook(DISPATCH_BEFORE, arrivals.told, fail="open")
    host.hook(DISPATCH_BEFORE, look, fail="open")
    host.hook(TURN_ENDED, ended)
    async with courier, asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[None]] = []

        async def started() -> None:
            tasks.append(group.create_task(desk.watch()))
            await courier.start()

        host.hook(DAEMON_STARTED, started)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
