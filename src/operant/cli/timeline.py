"""Tell a session's events as a timeline: what happened in each turn, and where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from operant.cli import figures
from operant.cli.calls import MARKS, outcome_note, short
from operant.cli.inert import one_line
from operant.cli.output import cells, coloured, dim, strong
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
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
    text_of,
)

Kind = Literal["you", "step", "failed", "tool", "asked", "reply", "context", "note", "resumed"]

_BAR = 20
_NAME = 8
_COLOURS: dict[str, str] = {"step": "blue", "tool": "green", "asked": "yellow", "failed": "red"}


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


class Break(Record):
    """Where a request did not begin with the last request, and who caused it.

    `part` is the first part that differs; `byte` is where in it, -1 as long as nobody has compared the bytes.
    """

    seq: int
    part: Literal["system", "tools", "messages"]
    cause: str
    old: str = ""
    new: str = ""
    byte: int = -1


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
                    Entry(kind="asked", seq=0, start_ms=start, text=_call(asked), outcome="waits for an answer")
                )
        for call_id, (at, tool) in self._started.items():
            for turn in list(self._turns.values())[-1:]:
                if not any(call_id == asked.call_id for _, asked in self._asked.values()):
                    start = turn.offset(at)
                    turn.entries.append(Entry(kind="tool", seq=0, start_ms=start, text=_call(tool), outcome="runs"))
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
                turn.add("note", event, text=body.text or str(body.data))
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
                turn.add("note", event, text="delivered" + (", perhaps for the second time" if body.repeat else ""))
            case MessageFailed() as body:
                turn.add("failed", event, text=f"not delivered after {body.attempts} attempts: {body.error}")
            case TurnEnded() as body:
                turn.reason, turn.sentence = body.reason, body.sentence
            case _:
                return

    def _tool_ended(self, turn: _Open, event: Event, body: ToolEnded) -> None:
        at, started = self._started.pop(body.call_id, (event.at, None))
        text = _call(started) if started else body.name
        took = body.duration_ms or (event.at - at) / 1_000
        turn.add("tool", event, took, text=text, outcome=body.outcome)

    def _approved(self, turn: _Open, event: Event, body: ApprovalAnswered) -> None:
        at, asked = self._asked.pop(body.approval_id, (event.at, None))
        who = f"{body.answer} by {body.by or 'somebody'}" + (f": {body.reason}" if body.reason else "")
        turn.add("asked", event, (event.at - at) / 1_000, text=_call(asked) if asked else "", outcome=who)


def _call(body: ToolStarted | ApprovalAsked) -> str:
    return f"{body.name}  {short(body.arguments)}".rstrip()


def _sum(entries: Sequence[Entry], *kinds: Kind) -> float:
    return sum(one.took_ms for one in entries if one.kind in kinds)


# ---------------------------------------------------------------------------- drawing


def draw(turns: Sequence[TurnTold], width: int) -> list[str]:
    """Return the timeline as lines of at most `width` columns."""
    lines: list[str] = []
    for turn in turns:
        lines += [_head(turn), *_details(turn, max(width, 60)), ""]
    return lines


def total(turns: Sequence[TurnTold]) -> str:
    """Say what all turns took together."""
    usage = sum((turn.usage for turn in turns), Usage())
    took, model, tool = (sum(getattr(turn, name) for turn in turns) for name in ("took_ms", "model_ms", "tool_ms"))
    asked = sum(turn.asked_ms for turn in turns)
    parts = [
        ("model", model),
        ("tools", tool),
        ("waiting for you", asked),
        ("rest", max(took - model - tool - asked, 0)),
    ]
    shares = " · ".join(f"{name} {100 * part / took:.0f} %" for name, part in parts if took and part / took >= 0.005)
    turns_word = "turn" if len(turns) == 1 else "turns"
    return f"{len(turns)} {turns_word} · {figures.seconds(took / 1_000)} · {figures.used(usage)}" + (
        f"\nwhere the time went: {shares}" if shares else ""
    )


def _head(turn: TurnTold) -> str:
    steps = f"{turn.steps} step{'' if turn.steps == 1 else 's'}"
    good = turn.reason in ("done", "open")
    reason = coloured(turn.reason, "green" if good else "red")
    facts = (
        f"{figures.moment(turn.began)} · {figures.seconds(turn.took_ms / 1_000)} · {steps} · {figures.used(turn.usage)}"
    )
    trigger = "" if turn.trigger == "message" else f" ({turn.trigger})"
    return f"{strong(f'turn {turn.number}')}{trigger}  {reason}  {dim(facts)}"


def _details(turn: TurnTold, width: int) -> list[str]:
    lines: list[str] = []
    step = 0
    for entry in turn.entries:
        step += entry.kind == "step" and not entry.text
        label = f"step {step}" if entry.kind == "step" and not entry.text else entry.kind
        took = figures.seconds(entry.took_ms / 1_000) if entry.took_ms else ""
        room = width - _NAME - _BAR - 14
        words = one_line(_words(entry), room)
        padding = " " * (room - cells(words))
        bar = coloured(_bar(entry, turn.took_ms), _COLOURS.get(entry.kind, "white")) if entry.took_ms else ""
        lines.append(f"  {label:<{_NAME}} {words}{padding} {took:>9} {bar}".rstrip())
    lines += [f"  {coloured('prefix', 'yellow'):<{_NAME}}   {_broken(one)}" for one in turn.breaks]
    if turn.sentence and not any(one.kind == "reply" and one.text == turn.sentence for one in turn.entries):
        lines.append(f"  {'ended':<{_NAME}} {one_line(turn.sentence, width - _NAME - 4)}")
    return lines


def _words(entry: Entry) -> str:
    if entry.kind == "step":
        return _step_words(entry)
    if entry.kind == "tool":
        mark = MARKS.get(entry.outcome, "…")  # type: ignore[call-overload]  # a tool that still runs has no outcome
        note = entry.outcome if entry.outcome == "runs" else outcome_note(entry.outcome)  # type: ignore[arg-type]
        return f"{mark} {entry.text}  {note}".rstrip()
    if entry.kind == "asked":
        return f"{entry.outcome}  {entry.text}"
    return entry.text


def _step_words(entry: Entry) -> str:
    facts = [entry.model, f"{figures.tokens(entry.usage.input)} in ({figures.share(entry.usage)})"]
    facts.append(f"{figures.tokens(entry.usage.output)} out")
    if entry.usage.usd:
        facts.append(figures.money(entry.usage.usd))
    if entry.first_token_ms:
        facts.append(f"first token {figures.seconds(entry.first_token_ms / 1_000)}")
    if entry.attempts > 1:
        facts.append(f"{entry.attempts} attempts")
    return " · ".join([*([f"for {entry.text}"] if entry.text else []), *facts])


def _broken(one: Break) -> str:
    place = {"system": "the system prompt", "tools": "the tool schemas", "messages": "the first message"}[one.part]
    where = f"byte {one.byte} of {place}" if one.byte >= 0 else place
    return f"the request no longer began with the last one, from {where} on; cause: {one_line(one.cause, 80)}"


def _bar(entry: Entry, took_ms: float) -> str:
    if took_ms <= 0:
        return ""
    left = min(round(_BAR * entry.start_ms / took_ms), _BAR - 1)
    length = max(1, min(round(_BAR * entry.took_ms / took_ms), _BAR - left))
    return "░" * left + "█" * length + "░" * (_BAR - left - length)
