"""Talk: `/api/chat/{session}`, at once or as a stream, and what became of a message."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal

from aiohttp import web

from operant.ext.gateway.api import Call, Nothing, Route
from operant.ext.gateway.exchange import Order, Outcome, hand_over, outcome, watched, words
from operant.ext.gateway.frames import KINDS, Framer, delta_frame, usage_of
from operant.ext.gateway.hub import Hub, Seen
from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.streams import Stream
from operant.sdk import BlobRef, Delta, Event, Json, MessageTrace, Part, Record, Traced

_LONGEST_KEY = 200


class ChatBody(Record):
    """A message; `mode` is `bounded` or `deep_work`, `attachments` are files that were uploaded before."""

    message: str = ""
    mode: Literal["bounded", "deep_work"] = "bounded"
    agent: str = ""
    model: str = ""
    attachments: tuple[BlobRef, ...] = ()


class ChatAnswer(Record):
    """What the agent said, and how it came to it; `finish_reason` is `done` unless a limit or a person ended it."""

    response: str
    session_id: str
    mode: str
    model: str
    usage: Json
    steps: int
    turn: str
    finish_reason: str
    inbox_id: str


class Accepted(Record):
    """A message that was taken and will be answered; `location` tells what became of it."""

    session_id: str
    inbox_id: str
    location: str
    repeat: bool = False


class Chat:
    """Answer the routes about messages."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(
                "POST",
                "/api/chat/{session}",
                self.chat,
                "Say something and wait for the answer; `Accept: text/event-stream` streams it, "
                "`Prefer: respond-async` returns at once.",
                "chat",
                body=ChatBody,
                returns=ChatAnswer,
                also={"text/event-stream": "The frames of the WebSocket, one an event, until `done`."},
            ),
            Route(
                "GET", "/api/messages/{inbox_id}", self.trace, "Tell what became of a message.", "chat", returns=Traced
            ),
        ]

    async def chat(self, call: Call[Nothing, ChatBody]) -> ChatAnswer | web.StreamResponse:
        """Answer a message."""
        order = self._order(call)
        if "text/event-stream" in call.request.headers.get("Accept", ""):
            return await self._stream(call, order)
        if "respond-async" in call.request.headers.get("Prefer", ""):
            return await self._accepted(call, order)
        done = await outcome(self._hub, call.client, order)
        done.need()
        return _answer(done, order.session, call.body.mode)

    async def trace(self, call: Call[Nothing, None]) -> Traced:
        """Explain a message."""
        return await call.client.call(MessageTrace(inbox_id=call.path("inbox_id")))

    def _order(self, call: Call[Nothing, ChatBody]) -> Order:
        body = call.body
        parts: tuple[Part, ...] = body.attachments
        if body.message.strip() or not parts:
            parts = (*words(body.message), *parts)
        return Order(
            session=call.path("session"),
            parts=parts,
            mode=KINDS[body.mode],
            agent=body.agent,
            model=body.model,
            key=key_of(call.request),
            account=call.principal.id,
        )

    async def _accepted(self, call: Call[Nothing, ChatBody], order: Order) -> web.Response:
        taken = await hand_over(call.client, order)
        location = f"/api/messages/{taken.inbox_id}"
        body = Accepted(session_id=taken.session, inbox_id=taken.inbox_id, location=location, repeat=taken.repeat)
        from operant.ext.gateway.api import reply

        response = reply(call.request, body, 202)
        response.headers["Location"] = location
        response.headers["Preference-Applied"] = "respond-async"
        return response

    async def _stream(self, call: Call[Nothing, ChatBody], order: Order) -> web.StreamResponse:
        framer = Framer()
        async with aclosing(watched(self._hub, call.client, order)) as seen:
            first = await anext(seen)  # what is refused is refused with a status, not inside a stream
            async with Stream(call.request) as stream:
                async for frame in _frames(framer, first, seen):
                    await stream.send(frame)
        return stream.response


async def _frames(framer: Framer, first: Seen, rest: AsyncGenerator[Seen, None]) -> AsyncGenerator[Json, None]:
    for frame in _of(framer, first):
        yield frame
    async for seen in rest:
        for frame in _of(framer, seen):
            yield frame


def _of(framer: Framer, seen: Seen) -> list[Json]:
    if isinstance(seen, Delta):
        return [delta_frame(seen)]
    return framer.frames(seen) if isinstance(seen, Event) else []


def _answer(done: Outcome, session: str, mode: str) -> ChatAnswer:
    return ChatAnswer(
        response=done.text or done.sentence,
        session_id=session,
        mode=mode,
        model=done.model,
        usage=usage_of(done.usage),
        steps=done.steps,
        turn=done.turn,
        finish_reason=done.reason,
        inbox_id=done.inbox_id,
    )


def key_of(request: web.Request) -> str:
    """Return the caller's own key of a request; empty for none."""
    key = request.headers.get("Idempotency-Key", "").strip().strip('"')
    if len(key) > _LONGEST_KEY:
        raise Rejected(400, f"An Idempotency-Key has at most {_LONGEST_KEY} characters.", code="invalid")
    return f"key:{key}" if key else ""
