"""The turns of a history, each in one line."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from operant.ext.gateway.frames import MODES
from operant.sdk import (
    Event,
    MessageReceived,
    ModelReplied,
    Record,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
    text_of,
)

_PREVIEW = 120


class TurnSummary(Record):
    """One turn; times are in microseconds, `ended` is 0 while it works, `reason` is empty then."""

    turn: str
    started: int = 0
    ended: int = 0
    trigger: str = "message"
    mode: str = "bounded"
    reason: str = ""
    preview: str = ""
    steps: int = 0
    tools: int = 0
    model: str = ""
    usage: Usage = Usage()


def turns_of(events: Iterable[Event]) -> tuple[TurnSummary, ...]:
    """Return the turns of some events, oldest first."""
    turns: dict[str, TurnSummary] = {}
    for event in events:
        if not event.turn:
            continue
        before = turns.get(event.turn) or TurnSummary(turn=event.turn, started=event.at)
        turns[event.turn] = _with(before, event)
    return tuple(turns.values())


def _with(turn: TurnSummary, event: Event) -> TurnSummary:
    body = event.body
    change = msgspec.structs.replace
    if isinstance(body, MessageReceived):
        return change(turn, preview=turn.preview or " ".join(text_of(body.parts).split())[:_PREVIEW])
    if isinstance(body, TurnStarted):
        return turn if body.trigger == "resume" else change(turn, trigger=body.trigger, mode=MODES[body.mode])
    if isinstance(body, ModelReplied):
        steps = turn.steps + (body.purpose == "turn")
        return change(turn, model=body.model, steps=steps, usage=turn.usage + body.usage)
    if isinstance(body, ToolStarted):
        return change(turn, tools=turn.tools + 1)
    if isinstance(body, TurnEnded):
        return change(turn, ended=event.at, reason=body.reason, usage=body.usage, steps=body.steps)
    return turn
