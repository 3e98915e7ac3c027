"""Say something to the agent for another program, and wait for what comes of it."""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from operant.sdk import (
    ApprovalAsked,
    Client,
    Event,
    MessageQueued,
    MessageReceived,
    NotFound,
    Record,
    SessionDispatch,
    SessionGet,
    SessionHistory,
    Text,
    TurnEnded,
    Unavailable,
    text_of,
)

_LATELY = 500
"""Events in which a message is looked for that was taken a moment ago."""


class Order(Record):
    """What to say, to whom, and where; the same `key` in a session is taken once."""

    message: str
    session: str
    agent: str = ""
    key: str = ""


class Said(Record):
    """What came of it; `state` is how the turn ended, or `waiting` for a person's yes or no to `question`."""

    answer: str
    session: str
    state: str = "done"
    question: str = ""


async def ask(client: Client, order: Order) -> Said:
    """Hand a message over and wait for its turn to end, or to need a person."""
    before = await _events(client, order.session)
    dispatched = await client.call(
        SessionDispatch(
            session=order.session, parts=(Text(text=order.message),), agent=order.agent, external_id=order.key
        )
    )
    after = 0 if dispatched.repeat else max(0, before - _LATELY)
    following = _Following(dispatched.inbox_id, order.session)
    async with aclosing(client.follow(order.session, after)) as seen:
        async for one in seen:
            said = following.take(one) if isinstance(one, Event) else None
            if said is not None:
                return said
    raise Unavailable("The system stopped before the turn ended.", "It goes on at the next start; see `history`.")


class _Following:
    def __init__(self, inbox_id: str, session: str) -> None:
        self._inbox_id = inbox_id
        self._turn = ""
        self._said = Said(answer="", session=session)

    def take(self, event: Event) -> Said | None:
        """Take in an event; return what there is to say once the turn is over, or waits."""
        body = event.body
        if isinstance(body, MessageReceived) and body.inbox_id == self._inbox_id:
            self._turn = event.turn
        if not self._turn or event.turn != self._turn:
            return None
        if isinstance(body, MessageQueued):
            answer = "\n\n".join(part for part in (self._said.answer, text_of(body.parts)) if part)
            self._said = msgspec.structs.replace(self._said, answer=answer)
        if isinstance(body, ApprovalAsked):
            return msgspec.structs.replace(self._said, state="waiting", question=body.question or body.name)
        if isinstance(body, TurnEnded):
            answer = self._said.answer or body.sentence
            return msgspec.structs.replace(self._said, state=body.reason, answer=answer)
        return None


async def _events(client: Client, session: str) -> int:
    try:
        return (await client.call(SessionGet(session=session))).events
    except NotFound:
        return 0


async def conversation(client: Client, session: str, limit: int) -> list[dict[str, str]]:
    """Return the last messages of a session, oldest first."""
    said: list[dict[str, str]] = []
    for event in await client.call(SessionHistory(session=session)):
        body = event.body
        if isinstance(body, MessageReceived):
            said.append({"role": "user", "text": text_of(body.parts)})
        elif isinstance(body, MessageQueued):
            said.append({"role": "agent", "text": text_of(body.parts)})
    return said[-limit:]
