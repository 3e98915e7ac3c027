"""Watch everything: `/api/activity` and `/ws/activity`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Annotated

from aiohttp import WSMsgType, web
from msgspec import Meta

from operant.ext.gateway.activity import activity, lately
from operant.ext.gateway.api import Call, Route
from operant.ext.gateway.hub import Hub, Viewer
from operant.ext.gateway.sockets import Sockets, send
from operant.sdk import Client, Event, Json, Record

_MOST = 1_000


class ActivityQuery(Record):
    """How much, and from which time in microseconds on (0: the last things)."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 50
    since: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0


class ActivityPage(Record):
    """What went on, oldest first."""

    events: tuple[Json, ...]


class WatchQuery(Record):
    """From which time in microseconds on (0: only what is new); `since` of the last frame misses nothing."""

    since: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0


class Activity:
    """Answer those who watch everything."""

    def __init__(self, hub: Hub, sockets: Sockets) -> None:
        self._hub = hub
        self._sockets = sockets

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("GET", "/api/activity", self.list, "Show what went on lately, over all sessions.", "activity", ActivityQuery, None, ActivityPage),
            Route("GET", "/ws/activity", self.socket, "Watch everything as it goes on.", "websocket", WatchQuery, status=101, sends="websocket"),
        ]  # fmt: skip

    async def list(self, call: Call[ActivityQuery, None]) -> ActivityPage:
        """Show what went on."""
        return ActivityPage(events=await lately(call.client, call.query.limit, call.query.since))

    async def socket(self, call: Call[WatchQuery, None]) -> web.StreamResponse:
        """Serve one window on everything."""
        socket = await self._sockets.welcome(call)
        try:
            with self._hub.viewer("") as viewer:
                await _serve(socket, viewer, call.client, call.query.since)
        finally:
            self._sockets.leave(socket)
        return socket


async def _serve(socket: web.WebSocketResponse, viewer: Viewer, client: Client, since: int) -> None:
    """Write until the client leaves."""
    async with asyncio.TaskGroup() as group:
        writer = group.create_task(_write(socket, viewer, client, since))
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await send(socket, {"type": "pong"})
        writer.cancel()


async def _write(socket: web.WebSocketResponse, viewer: Viewer, client: Client, since: int) -> None:
    with contextlib.suppress(ConnectionError):
        async for frame in _frames(viewer, client, since):
            await send(socket, frame)


async def _frames(viewer: Viewer, client: Client, since: int) -> AsyncGenerator[Json, None]:
    """Yield what the client missed, then what comes; an event that is in both comes once."""
    sent: dict[str, int] = {}
    for frame in await lately(client, _MOST, since) if since else ():
        sent[frame["session_id"]] = frame["seq"]
        yield frame
    async for seen in viewer.seen():
        if not isinstance(seen, Event) or seen.seq <= sent.get(seen.session, 0):
            continue
        frame = activity(seen)
        if frame:
            yield frame
