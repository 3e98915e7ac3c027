"""Services that run elsewhere: the same messages as text frames of a WebSocket."""

from __future__ import annotations

import asyncio
from typing import Any

from operant.ext.services.roster import Roster
from operant.ext.services.wire import LONGEST
from operant.sdk import Denied, Frames, HttpRequest, HttpResponse, Mount, NotFound, allowed

PATH = "/ws/services"
CONNECT = "service.connect"
_UNSENT = 1_000
"""Messages that may wait for a slow client before it is hung up on."""
_READY_S = 5.0


class Wing:
    """Takes the connections of services that run elsewhere."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    def mount(self) -> Mount:
        """Return the path at which they connect."""
        summary = "Connect the service of a skill (svc/1, as text frames)."
        return Mount(PATH, self._answer, summary, frozenset({"GET"}), CONNECT, talk=self._talk, longest=LONGEST)

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        words = b"This is a WebSocket: connect with ws://."
        return HttpResponse(426, (("Upgrade", "websocket"), ("Content-Type", "text/plain")), words)

    async def _talk(self, request: HttpRequest, frames: Frames) -> None:
        name = request.below.lstrip("/")
        try:
            if not allowed(request.principal, f"{CONNECT}.{name}"):
                raise Denied(f"This token is not for the service {name[:80]}.")
            keeper = self._roster.post(name).keeper
            if not keeper.remote:
                raise NotFound(f"{name} is no service that runs elsewhere, or was not allowed to.")
        except (Denied, NotFound) as error:
            await frames.close(error.sentence)
            return
        generation = await keeper.expecting(_READY_S)
        if generation is None:
            await frames.close("Another connection is just being made; try again.")
            return
        async with asyncio.TaskGroup() as group:
            wire = _Wire(frames, group)
            generation.enter(wire, b"")
            while not wire.closed and (text := await frames.receive()) is not None:
                generation.heard(text.encode() + b"\n")
            generation.hung_up()
            wire.abort()


class _Wire:
    """What a line writes to, over a WebSocket: as much of a transport as a line uses."""

    def __init__(self, frames: Frames, group: asyncio.TaskGroup) -> None:
        self._frames = frames
        self._unsent: asyncio.Queue[bytes] = asyncio.Queue()
        self._sending = group.create_task(self._send())
        self.closed = False

    def write(self, data: bytes) -> None:
        """Send a message when its turn comes."""
        if self._unsent.qsize() >= _UNSENT:
            self.abort()
        elif not self.closed:
            self._unsent.put_nowait(data)

    def get_write_buffer_size(self) -> int:
        """Return nothing: what waits is bounded here."""
        return 0

    def is_closing(self) -> bool:
        """Tell whether nothing is sent any more."""
        return self.closed

    def set_protocol(self, protocol: Any) -> None:
        """Do nothing: there is no other."""

    def abort(self) -> None:
        """Hang up, after what was said."""
        self.closed = True
        self._unsent.put_nowait(b"")

    async def _send(self) -> None:
        while data := await self._unsent.get():
            await self._frames.send(data.rstrip(b"\n").decode())
        await self._frames.close("Operant hangs up.")
