"""Tell a session's events as a timeline: what happened in each turn, and where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from operant.cli import figures
from operant.cli.calls import asked_for, short
from operant.kernel.records import (
    ApprovalAnswered,
    ApprovalAsked,
    ContextCompacted,
    ContextOpened,
    Ending,
    Event,
    MessageDelivered,
    MessageFailed,
    MessageQueued,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    Note,
    Record,
    ToolCall,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
    text_of,
)

Kind = Literal["you", "step", "failed", "tool", "asked", "reply", "context", "note", "resumed"]


class Entry(Record):
    """One thing that happened in a turn; `start_ms` counts from the turn's beginning."""

    kind: Kind
    seq: int
    start_ms: float
    took_ms: float = 0.0
    text: str = ""
    usage: Usage = Usage()
    model: str = ""
    first_token_ms: float = 0.0
    attempts: int = 0
    outcome: str = ""
    why: str = ""
    """What a tool said that did not do what it was called for."""


class Break(Record):
    """Where a request did not begin with the last request, and who caused it.

    `part` is the first part that differs; `byte` is where in it, -1 as long as nobody has compared the bytes, and
    `text` is what stands there now.
    """

    seq: int
    part: Literal["system", "tools", "messages"]
    cause: str
    old: str = ""
    new: str = ""
    byte: int = -1
    text: str = ""


class TurnTold(Record):
    """One turn as the timeline shows it."""

    turn: str
    number: int
    began: int
    trigger: str
    took_ms: float
    reason: Ending | Literal["open"]
    sentence: str
    steps: int
    usage: Usage
    entries: tuple[Entry, ...]
    breaks: tuple[Break, ...]
    model_ms: float
    tool_ms: float
    asked_ms: float


def tell(events: Sequence[Event]) -> list[TurnTold]:
    """Fold events into turns; what happened outside of turns is left out."""
    teller = _Teller()
    for event in events:
        teller.take(event)
    return teller.finish()


class _Open:
    """A turn while its events are read."""

    def __init__(self, event: Event, number: int) -> None:
        self.turn = event.turn
        self.number = number
        self.began = self.last = event.at
        self.trigger = "message"
        self.reason: Ending | Literal["open"] = "open"
        self.sentence = ""
        self.entries: list[Entry] = []
        self.breaks: list[Break] = []

    def offset(self, at: int) -> float:
        return (at - self.began) / 1_000

    def add(self, kind: Kind, event: Event, took_ms: float = 0.0, **rest: object) -> None:
        start = max(self.offset(event.at) - took_ms, 0.0)
        self.entries.append(Entry(kind=kind, seq=event.seq, start_ms=start, took_ms=took_ms, **rest))  # type: ignore[arg-type]  # fields of Entry

    def settle(self, outcome: str) -> None:
        """Note on the last reply what became of it."""
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index].kind == "reply":
                self.entries[index] = msgspec.structs.replace(self.entries[index], outcome=outcome)
                return

    def told(self) -> TurnTold:
        steps = [one for one in self.entries if one.kind == "step"]
        return TurnTold(
            turn=self.turn,
            number=self.number,
            began=self.began,
            trigger=self.trigger,
            took_ms=self.offset(self.last),
            reason=self.reason,
            sentence=self.sentence,
            steps=len(steps),
            usage=sum((one.usage for one in self.entries), Usage()),
            entries=tuple(sorted(self.entries, key=lambda one: (one.start_ms, one.seq))),
            breaks=tuple(self.breaks),
            model_ms=_sum(self.entries, "step", "failed"),
            tool_ms=_sum(self.entries, "tool"),
            asked_ms=_sum(self.entries, "asked"),
        )


class _Teller:
    def __init__(self) -> None:
        self._turns: dict[str, _Open] = {}
        self._started: dict[str, tuple[int, ToolStarted]] = {}
        self._asked: dict[str, tuple[int, ApprovalAsked]] = {}
        self._written: dict[str, str] = {}
        self._opened: ContextOpened | None = None
        self._cause = ""

    def take(self, event: Event) -> None:
        """Take one more event into account."""
        if isinstance(event.body, ContextOpened):
            self._context(event, event.body)
        if not event.turn:
            return
        turn = self._turns.get(event.turn)
        if turn is None:
            turn = self._turns[event.turn] = _Open(event, len(self._turns) + 1)
        turn.last = max(turn.last, event.at)
        self._model(turn, event)
        self._work(turn, event)

    def finish(self) -> list[TurnTold]:
        """Return the turns; questions without an answer and tools without an end last until the end of the log."""
        for at, asked in self._asked.values():
            for turn in list(self._turns.values())[-1:]:
                start = turn.offset(at)
                turn.entries.append(
                    Entry(kind="asked", seq=0, start_ms=start, text=self._call(asked), outcome="waits for an answer")
                )
        for call_id, (at, tool) in self._started.items():
            for turn in list(self._turns.values())[-1:]:
                if not any(call_id == asked.call_id for _, asked in self._asked.values()):
                    start = turn.offset(at)
                    turn.entries.append(
                        Entry(kind="tool", seq=0, start_ms=start, text=self._call(tool), outcome="runs")
                    )
        return [turn.told() for turn in self._turns.values()]

    def _context(self, event: Event, body: ContextOpened) -> None:
        """Note that prompt or tools are others than before; a compaction just before is the deeper cause."""
        old, self._opened = self._opened, body
        turn = self._turns.get(event.turn)
        if old is None or turn is None:
            return
        cause = body.reason or self._cause or "no reason was given"
        if old.system.digest != body.system.digest:
            what = Break(seq=event.seq, part="system", cause=cause, old=old.system.digest, new=body.system.digest)
            turn.breaks.append(what)
        elif old.tools.digest != body.tools.digest:
            what = Break(seq=event.seq, part="tools", cause=cause, old=old.tools.digest, new=body.tools.digest)
            turn.breaks.append(what)

    def _model(self, turn: _Open, event: Event) -> None:
        match event.body:
            case ModelReplied() as body:
                self._written |= {part.id: part.arguments for part in body.parts if isinstance(part, ToolCall)}
                turn.add(
                    "step",
                    event,
                    body.latency_ms,
                    text="" if body.purpose == "turn" else body.purpose,
                    usage=body.usage,
                    model=body.model,
                    first_token_ms=body.first_token_ms,
                    attempts=body.attempts,
                    outcome=body.finish,
                )
            case ModelFailed() as body:
                text = f"{body.error}: {body.sentence}".rstrip(": ") + f" → {body.then}"
                turn.add("failed", event, text=text, model=body.model, usage=body.usage)
            case ContextCompacted() as body:
                sizes = f"{figures.tokens(body.tokens_before)} → {figures.tokens(body.tokens_after)} tokens"
                turn.add("context", event, text=f"compacted up to event {body.upto} ({body.strategy}), {sizes}")
                turn.breaks.append(Break(seq=event.seq, part="messages", cause=f"compaction ({body.strategy})"))
            case Note(kind="hook") as body:
                turn.add("note", event, text=_rewrite(body))
            case _:
                return

    def _work(self, turn: _Open, event: Event) -> None:
        match event.body:
            case MessageReceived() as body:
                turn.add("you", event, text=text_of(body.parts))
            case TurnStarted(trigger="resume"):
                turn.add("resumed", event, text="taken up again after a stop of the process")
            case TurnStarted() as body:
                turn.trigger = body.trigger
            case ToolStarted() as body:
                self._started[body.call_id] = (event.at, body)
            case ToolEnded() as body:
                self._tool_ended(turn, event, body)
            case ApprovalAsked() as body:
                self._asked[body.approval_id] = (event.at, body)
            case ApprovalAnswered() as body:
                self._approved(turn, event, body)
            case _:
                self._end(turn, event)

    def _end(self, turn: _Open, event: Event) -> None:
        match event.body:
            case MessageQueued() as body:
                turn.add("reply", event, text=text_of(body.parts))
            case MessageDelivered() as body:
                turn.settle("delivered, perhaps for the second time" if body.repeat else "delivered")
            case MessageFailed() as body:
                turn.settle(f"not delivered after {body.attempts} attempts: {body.error}")
            case TurnEnded() as body:
                turn.reason, turn.sentence = body.reason, body.sentence
            case _:
                return

    def _call(self, body: ToolStarted | ApprovalAsked) -> str:
        written = self._written.get(body.call_id)
        return f"{body.name} {short(asked_for(body.arguments, written) if written else body.arguments)}".rstrip()

    def _tool_ended(self, turn: _Open, event: Event, body: ToolEnded) -> None:
        at, started = self._started.pop(body.call_id, (event.at, None))
        text = self._call(started) if started else body.name
        took = body.duration_ms or (event.at - at) / 1_000
        why = "" if body.outcome == "ok" else text_of(body.parts)
        turn.add("tool", event, took, text=text, outcome=body.outcome, why=why)

    def _approved(self, turn: _Open, event: Event, body: ApprovalAnswered) -> None:
        at, asked = self._asked.pop(body.approval_id, (event.at, None))
        who = f"{body.answer} by {body.by or 'somebody'}" + (f": {body.reason}" if body.reason else "")
        turn.add("asked", event, (event.at - at) / 1_000, text=self._call(asked) if asked else "", outcome=who)


def _rewrite(note: Note) -> str:
    """Say which handler changed what, and where."""
    data = note.data
    words = f"{data.get('by', 'a hook')} {data.get('did', 'acted')} at {data.get('point', '?')}"
    return f"{words}: {note.text}" if note.text else words


def _sum(entries: Sequence[Entry], *kinds: Kind) -> float:
    return sum(one.took_ms for one in entries if one.kind in kinds)
