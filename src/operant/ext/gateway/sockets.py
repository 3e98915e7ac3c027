"""`/ws/{session}`: watch a session and talk into it; any number of windows see the same."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import Any

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from operant.ext.gateway.api import Call, Route, need_read
from operant.ext.gateway.exchange import Order, hand_over, words
from operant.ext.gateway.frames import KINDS, Framer, delta_frame, event_frame
from operant.ext.gateway.hub import Hub, Reset, Seen, Viewer
from operant.ext.gateway.incoming import (
    INCOMING,
    ApprovalResponse,
    ApprovePlan,
    Clear,
    Incoming,
    Ping,
    Resume,
    RevisePlan,
    Said,
    SetMode,
    StopTurn,
)
from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.sessions import clear
from operant.sdk import (
    ApprovalAnswer,
    ApprovalList,
    Client,
    Delta,
    Json,
    NotFound,
    OperantError,
    Part,
    Record,
    SessionHistory,
    SessionStop,
)

LARGEST = 1 << 20
"""Bytes of a message that a client may send."""
ALIVE_S = 20.0
"""Seconds after which a silent client is asked whether it is there."""
_TOOL_S = 0.05
"""Pause between two pieces of a tool's live output: a person reads no faster, and a page stays quick."""
_BEFORE = 200
"""Events before a resumed one that tell where in its turn it is."""

_log = logging.getLogger("operant.gateway")


class SocketQuery(Record):
    """How to watch: from after which seq (-1: only what is new), as frames or as events."""

    after: int = -1
    view: str = "frames"


class Sockets:
    """Serve WebSockets."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._open: set[web.WebSocketResponse] = set()

    def routes(self) -> list[Route]:
        """Return the route."""
        summary = "Watch a session and talk into it."
        return [
            Route(
                "GET", "/ws/{session}", self.session, summary, "websocket", SocketQuery, status=101, sends="websocket"
            )
        ]

    @property
    def count(self) -> int:
        """Return how many are open."""
        return len(self._open)

    async def session(self, call: Call[SocketQuery, None]) -> web.StreamResponse:
        """Serve one window on one session."""
        socket = await self.welcome(call)
        try:
            await _Window(self._hub, call, socket).run()
        finally:
            self._open.discard(socket)
        return socket

    async def welcome(self, call: Call[Any, None]) -> web.WebSocketResponse:
        """Take a connection whose holder may read histories."""
        need_read(call.principal)
        socket = web.WebSocketResponse(heartbeat=ALIVE_S, max_msg_size=LARGEST, compress=False)
        if not socket.can_prepare(call.request):
            raise Rejected(426, "This is a WebSocket.", "Connect with ws://.", headers={"Upgrade": "websocket"})
        await socket.prepare(call.request)
        self._open.add(socket)
        return socket

    def leave(self, socket: web.WebSocketResponse) -> None:
        """Forget a connection."""
        self._open.discard(socket)

    async def close(self) -> None:
        """Ask every client to come back later."""
        for socket in tuple(self._open):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"Operant is stopping; connect again.")


async def send(socket: web.WebSocketResponse, frame: Any) -> None:
    """Send one frame; one that goes nowhere because the client has left is dropped."""
    if not socket.closed:
        await socket.send_frame(msgspec.json.encode(frame), WSMsgType.TEXT)


class _Window:
    """One client's window on a session."""

    def __init__(self, hub: Hub, call: Call[SocketQuery, None], socket: web.WebSocketResponse) -> None:
        self._hub = hub
        self._client: Client = call.client
        self._account = call.principal.id
        self._session = call.path("session")
        self._raw = call.query.view == "events"
        self._after = call.query.after
        self._socket = socket
        self._framer = Framer()
        self._mode = "bounded"
        self._writer: asyncio.Task[None] | None = None
        self._answers = {
            Said: self._say, SetMode: self._set_mode, Clear: self._clear, Ping: self._ping, StopTurn: self._stop,
            ApprovalResponse: self._approve, ApprovePlan: self._approve_plan, RevisePlan: self._revise_plan,
        }  # fmt: skip

    async def run(self) -> None:
        """Serve until the client leaves."""
        async with asyncio.TaskGroup() as group:
            self._watch(group, self._after)
            async for message in self._socket:
                if message.type is not WSMsgType.TEXT:
                    await self._error("Only text is understood here.", "Send JSON.")
                    continue
                await self._take(message.data, group)
            if self._writer is not None:
                self._writer.cancel()

    # ------------------------------------------------------------------ what goes out

    def _watch(self, group: asyncio.TaskGroup, after: int) -> None:
        """Watch from after a seq; a window that was watching from elsewhere stops that."""
        if self._writer is not None:
            self._writer.cancel()
        self._writer = group.create_task(self._write(after))

    async def _write(self, after: int) -> None:
        with self._hub.viewer(self._session, after) as viewer:
            if after > 0 and not self._raw:
                await self._prime(after)
            try:
                await self._show(viewer)
            except (ConnectionError, OperantError) as error:
                _log.info("a window on %s closed: %s", self._session, error)
                await self._socket.close()

    async def _prime(self, after: int) -> None:
        """Learn where in a turn the client is that goes on."""
        self._framer = Framer()
        start = max(0, after - _BEFORE)
        before = SessionHistory(session=self._session, after=start, limit=after - start)
        try:
            for event in await self._client.call(before):
                self._framer.frames(event)
        except NotFound:
            return

    async def _show(self, viewer: Viewer) -> None:
        async with aclosing(viewer.seen()) as all_seen:
            async for seen in all_seen:
                for frame in self._frames(seen):
                    await send(self._socket, frame)
                if isinstance(seen, Delta) and seen.kind == "tool":
                    await asyncio.sleep(_TOOL_S)

    def _frames(self, seen: Seen) -> list[Json]:
        if isinstance(seen, Reset):
            return [{"type": "cleared"}]
        if isinstance(seen, Delta):
            return [delta_frame(seen)]
        return [event_frame(seen)] if self._raw else self._framer.frames(seen)

    # ------------------------------------------------------------------ what comes in

    async def _take(self, text: str, group: asyncio.TaskGroup) -> None:
        try:
            frame: Incoming = msgspec.json.decode(text, type=INCOMING)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            await self._error(f"This frame is not understood: {error}.", "docs/reference/http.md lists the frames.")
            return
        if isinstance(frame, Resume):
            self._watch(group, max(0, frame.seq))
            return
        answer: Any = self._answers[type(frame)]
        try:
            await answer(frame)
        except OperantError as error:
            await self._error(error.sentence, error.hint, code=error.code, id=getattr(frame, "id", ""))
        except Rejected as error:
            await self._error(error.sentence, error.hint, code=error.code, id=getattr(frame, "id", ""))

    async def _error(self, sentence: str, hint: str = "", *, code: str = "invalid", id: str = "") -> None:
        frame = {"type": "error", "message": f"{sentence} {hint}".rstrip(), "code": code}
        await send(self._socket, {**frame, "id": id} if id else frame)

    async def _say(self, frame: Said) -> None:
        parts: tuple[Part, ...] = frame.attachments
        if frame.content.strip() or not parts:
            parts = (*words(frame.content), *parts)
        order = Order(
            session=self._session,
            parts=parts,
            mode=KINDS[frame.mode or self._mode],
            agent=frame.agent,
            model=frame.model,
            key=f"id:{frame.id}" if frame.id else "",
            account=self._account,
        )
        taken = await hand_over(self._client, order)
        await send(
            self._socket, {"type": "accepted", "id": frame.id, "inbox_id": taken.inbox_id, "repeat": taken.repeat}
        )

    async def _set_mode(self, frame: SetMode) -> None:
        self._mode = frame.mode
        await send(self._socket, {"type": "mode_changed", "mode": frame.mode})

    async def _clear(self, frame: Clear) -> None:
        await clear(self._client, self._session)
        self._hub.reset(self._session)

    async def _ping(self, frame: Ping) -> None:
        await send(self._socket, {"type": "pong"})

    async def _stop(self, frame: StopTurn) -> None:
        await self._client.call(SessionStop(session=self._session, turn=frame.turn))

    async def _approve(self, frame: ApprovalResponse) -> None:
        # The question of a sub-agent is named by its id: it waits in a session of its own.
        waiting = await self._client.call(ApprovalList(session="" if frame.approval_id else self._session))
        meant = [
            one
            for one in waiting
            if one.approval_id == frame.approval_id
            or (one.session == self._session and one.call_id == (frame.tool_call_id or "-"))
        ]
        if not meant:
            raise NotFound("Nothing waits for this answer.", "It was answered, or it expired.")
        answer = ApprovalAnswer(
            approval_id=meant[0].approval_id,
            answer="allow" if frame.approved else "deny",
            scope=frame.scope,
            reason=frame.reason,
        )
        await self._client.call(answer)

    async def _approve_plan(self, frame: ApprovePlan) -> None:
        await self._say(
            Said(content=f"The plan is approved; carry it out. {frame.feedback}".rstrip(), mode="deep_work")
        )

    async def _revise_plan(self, frame: RevisePlan) -> None:
        await self._say(Said(content=frame.feedback, mode="deep_work"))
