"""What became of an accepted message, in words."""

from __future__ import annotations

from collections.abc import Sequence

from operant.sdk import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Host,
    MessageDelivered,
    MessageFailed,
    MessageQueued,
    MessageTrace,
    NotFound,
    OutboxItem,
    Principal,
    Traced,
    TurnEnded,
)


class Tracer:
    """Explain messages."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def trace(self, who: Principal, call: MessageTrace) -> Traced:
        """Explain what became of an accepted message."""
        store = self._host.kept
        item = await store.inbox_item(call.inbox_id)
        if item is None:
            raise NotFound(f"No message {call.inbox_id!r} was accepted.", "`operant trace SESSION` shows their ids.")
        if item.state != "received":
            words = "It waits for its turn." if item.state == "waiting" else f"It was refused: {item.reason}"
            return Traced(state=item.state, sentence=words, item=item)
        events = _turn_of(await store.events(item.session, item.seq - 1))
        letters = [event.body.outbox_id for event in events if isinstance(event.body, MessageQueued)]
        found = [await store.outbox_item(letter) for letter in letters]
        replies = tuple(reply for reply in found if reply is not None)
        state, sentence = _explained(events, replies)
        return Traced(state=state, sentence=sentence, item=item, events=tuple(events), replies=replies)


def _turn_of(events: Sequence[Event]) -> list[Event]:
    """Return the events from a message to the end of the turn that handled it, and its deliveries."""
    turn = next((event.turn for event in events if event.type == "turn.started"), "")
    own = [event for event in events if event.turn == turn or event.seq == events[0].seq]
    letters = {event.body.outbox_id for event in own if isinstance(event.body, MessageQueued)}
    return [
        event
        for event in events
        if event in own
        or (isinstance(event.body, MessageDelivered | MessageFailed) and event.body.outbox_id in letters)
    ]


def _explained(events: Sequence[Event], replies: Sequence[OutboxItem]) -> tuple[str, str]:
    """Say where the handling of a message stands."""
    ended = next((event.body for event in events if isinstance(event.body, TurnEnded)), None)
    if ended is None:
        asked = {event.body.approval_id for event in events if isinstance(event.body, ApprovalAsked)}
        answered = {event.body.approval_id for event in events if isinstance(event.body, ApprovalAnswered)}
        if asked - answered:
            return "asking", "A person must decide about a call first: see `operant approval list`."
        return "working", f"Its turn is at work; the last thing on record is {events[-1].type}."
    states = {reply.state for reply in replies}
    if "dead" in states:
        return "failed", "Its reply could not be delivered: see `operant outbox list --dead`."
    if states & {"waiting", "handed"}:
        return "answered", "Its reply is on its way."
    if ended.reason == "done":
        return "delivered", "It was answered and the reply was delivered."
    return "delivered", f"Its turn ended: {ended.reason}. {ended.sentence}".rstrip()
