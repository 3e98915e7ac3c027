"""One message and what comes of it: handed over once, watched to the end of its turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from operant.ext.gateway.hub import Hub, Reset, Seen, Viewer
from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.settings import CHANNEL
from operant.sdk import (
    Address,
    Client,
    Conflict,
    Dispatched,
    Event,
    MessageQueued,
    MessageReceived,
    MessageTrace,
    Mode,
    ModelFailed,
    ModelReplied,
    Part,
    Record,
    SessionDispatch,
    SessionGet,
    SessionOpen,
    SessionUpdate,
    Text,
    TurnEnded,
    Usage,
    text_of,
)

_SLOW = frozenset({"timeout", "stalled"})


class Order(Record):
    """A message that somebody sends; `key` is their own id of it, by which it is taken once."""

    session: str
    parts: tuple[Part, ...]
    mode: Mode = "chat"
    agent: str = ""
    model: str = ""
    key: str = ""
    account: str = ""


class Outcome(Record):
    """How a turn ended; `failed` is the kind of the last error of a model that nothing came after."""

    text: str = ""
    parts: tuple[Part, ...] = ()
    reason: str = ""
    sentence: str = ""
    model: str = ""
    usage: Usage = Usage()
    steps: int = 0
    turn: str = ""
    seq: int = 0
    inbox_id: str = ""
    failed: str = ""

    def need(self) -> None:
        """Raise `Rejected` where there is no answer because something failed."""
        if self.reason == "rejected":
            raise Rejected(403, self.sentence or "The message was refused.", code="refused")
        if self.reason != "error":
            return
        status = 500 if not self.failed else 504 if self.failed in _SLOW else 502
        code = "model_error" if self.failed else "broken"
        raise Rejected(status, self.sentence or "The turn failed.", "The session shows what happened.", code=code)


async def hand_over(client: Client, order: Order) -> Dispatched:
    """Give a message to its session; on return it is durable. Raises `Conflict` for a key of another message."""
    if order.model:
        await _choose(client, order)
    dispatched = await client.call(
        SessionDispatch(
            session=order.session,
            parts=order.parts,
            agent=order.agent,
            mode=order.mode,
            external_id=order.key,
            address=Address(channel=CHANNEL, chat=order.session, account=order.account),
        )
    )
    if dispatched.repeat:
        item = (await client.call(MessageTrace(inbox_id=dispatched.inbox_id))).item
        if item.session != order.session or item.parts != order.parts:
            raise Conflict("This Idempotency-Key was used for another message.", "Use a fresh key for each message.")
    return dispatched


async def watched(hub: Hub, client: Client, order: Order) -> AsyncGenerator[Seen, None]:
    """Hand a message over and yield what its turn shows, from the message to the turn's end."""
    with hub.viewer(order.session) as viewer:
        dispatched = await hand_over(client, order)
        async for seen in _first_time(viewer, dispatched):
            yield seen
    if not dispatched.repeat:
        return
    item = (await client.call(MessageTrace(inbox_id=dispatched.inbox_id))).item
    if item.state == "rejected":
        raise Rejected(403, f"This message was refused: {item.reason}", code="refused")
    with hub.viewer(order.session, max(0, item.seq - 1)) as viewer:
        async for seen in _own(viewer, dispatched.inbox_id):
            yield seen


async def _first_time(viewer: Viewer, dispatched: Dispatched) -> AsyncGenerator[Seen, None]:
    """Yield the turn of a message that was new; nothing for a repeat."""
    if not dispatched.repeat:
        async for seen in _own(viewer, dispatched.inbox_id):
            yield seen


async def _own(viewer: Viewer, inbox_id: str) -> AsyncGenerator[Seen, None]:
    """Keep what belongs to the turn that handles a message."""
    turn = ""
    async with aclosing(viewer.seen()) as seen:
        async for one in seen:
            if isinstance(one, Reset):
                raise Rejected(409, "The session was deleted while it worked.", code="conflict")
            if isinstance(one, Event) and isinstance(one.body, MessageReceived) and one.body.inbox_id == inbox_id:
                turn = one.turn
            if not turn or one.turn != turn:
                continue
            yield one
            if isinstance(one, Event) and isinstance(one.body, TurnEnded):
                return


class Gatherer:
    """Put together what a turn came to."""

    def __init__(self) -> None:
        self.outcome = Outcome()

    def take(self, event: Event) -> None:
        """Note what an event adds."""
        body = event.body
        if isinstance(body, MessageReceived) and not self.outcome.inbox_id:
            self._set(inbox_id=body.inbox_id, turn=event.turn)
        elif isinstance(body, ModelReplied) and body.purpose == "turn":
            self._set(model=body.model, failed="")
        elif isinstance(body, ModelFailed) and body.purpose == "turn":
            self._set(model=body.model, failed=body.error)
        elif isinstance(body, MessageQueued):
            self._set(text=text_of(body.parts), parts=body.parts)
        elif isinstance(body, TurnEnded):
            self._set(
                reason=body.reason,
                sentence=body.sentence,
                usage=body.usage,
                steps=body.steps,
                turn=event.turn,
                seq=event.seq,
            )

    def _set(self, **changes: object) -> None:
        self.outcome = msgspec.structs.replace(self.outcome, **changes)


async def outcome(hub: Hub, client: Client, order: Order) -> Outcome:
    """Hand a message over and wait for the end of its turn."""
    gatherer = Gatherer()
    async with aclosing(watched(hub, client, order)) as seen:
        async for one in seen:
            if isinstance(one, Event):
                gatherer.take(one)
    return gatherer.outcome


async def _choose(client: Client, order: Order) -> None:
    """Let another model answer the session from now on."""
    address = Address(channel=CHANNEL, chat=order.session, account=order.account)
    await client.call(SessionOpen(session=order.session, agent=order.agent, address=address))
    if (await client.call(SessionGet(session=order.session))).model != order.model:
        await client.call(SessionUpdate(session=order.session, model=order.model))


def words(text: str) -> tuple[Part, ...]:
    """Make parts of a text. Raises `Rejected` for one in which there is nothing."""
    if not text.strip():
        raise Rejected(400, "Empty message", "Give `message` some words.", code="invalid")
    return (Text(text=text),)
