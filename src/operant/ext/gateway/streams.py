"""Server-sent events: one frame an event, with its seq as the id where it has one."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from operant.sdk import Json

SILENCE_S = 15.0
"""Seconds without a frame after which a comment keeps the connection alive."""


class Stream:
    """A response that goes on."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        self._group = asyncio.TaskGroup()
        self._alive: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Stream:
        await self.response.prepare(self._request)
        await self._group.__aenter__()
        self._alive = self._group.create_task(self._keep_alive())
        return self

    async def __aexit__(self, *reason: Any) -> None:
        if self._alive is not None:
            self._alive.cancel()
        await self._group.__aexit__(None, None, None)
        if reason[0] is None:
            await self.response.write_eof()

    async def send(self, frame: Json, event: str = "") -> None:
        """Send one frame as JSON."""
        seq = frame.get("seq")
        lines = [f"event: {event}\n" if event else "", f"id: {seq}\n" if isinstance(seq, int) else ""]
        await self.write("".join(lines).encode() + b"data: " + msgspec.json.encode(frame) + b"\n\n")

    async def all(self, frames: list[Json]) -> None:
        """Send some frames."""
        for frame in frames:
            await self.send(frame)

    async def write(self, data: bytes) -> None:
        """Send bytes that are events already."""
        await self.response.write(data)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(SILENCE_S)
            await self.response.write(b": still here\n\n")
