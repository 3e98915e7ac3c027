"""Where a task stands: a letter that came over A2A, read off the history each time it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from operant.ext.a2a.incoming import bare
from operant.ext.a2a.letter import MARK, Letter
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.outcome import Outcomes
from operant.sdk import (
    ApprovalAnswered,
    ApprovalAsked,
    Ending,
    Event,
    Host,
    MessageQueued,
    MessageReceived,
    ModelReplied,
    Part,
    Record,
    Text,
    TurnEnded,
)

TaskState = Literal["submitted", "working", "asking", "completed", "failed", "canceled", "rejected"]
FINAL: frozenset[TaskState] = frozenset({"completed", "failed", "canceled", "rejected"})

_BY_ENDING: dict[Ending, TaskState] = {"done": "completed", "stopped": "canceled", "rejected": "rejected"}


class Line(Record):
    """One message of a task's history."""

    id: str
    ours: bool
    parts: tuple[Part, ...]


class Standing(Record):
    """A task now; `at` is when it came to stand so, `turn` the one that works on it."""

    letter: Letter
    state: TaskState
    at: int
    words: str = ""
    answer: tuple[Part, ...] = ()
    lines: tuple[Line, ...] = ()
    turn: str = ""
    approval: str = ""

    @property
    def final(self) -> bool:
        """Tell whether it will never stand otherwise."""
        return self.state in FINAL

    @property
    def rests(self) -> bool:
        """Tell whether nothing happens unless somebody else does something."""
        return self.final or self.state == "asking"

    @property
    def mark(self) -> tuple[object, ...]:
        """Return what changes when there is something to tell."""
        return (self.state, self.words, self.approval)


class Standings:
    """Read tasks off histories."""

    def __init__(self, host: Host, letters: Letters) -> None:
        self._host = host
        self._letters = letters
        self._outcomes = Outcomes(host, letters)

    async def seq(self, letter: Letter) -> int:
        """Return where the history of a letter's session ends now."""
        head = await self._host.kept.head(letter.session)
        return head.seq if head else 0

    async def of(self, letter: Letter, upto: int | None = None) -> Standing:
        """Return how a task stands, or stood after an event."""
        if letter.kind == "silent":
            return Standing(letter=letter, state="completed", at=letter.sent, words="It is on record.")
        where = letter.address
        item = await self._host.kept.accepted(where.channel, where.account, letter.external_id("ask"))
        if item is None or item.state == "waiting" or (upto is not None and upto < item.seq):
            return Standing(letter=letter, state="submitted", at=letter.sent)
        if item.state == "rejected":
            return Standing(letter=letter, state="rejected", at=letter.sent, words=item.reason)
        events = await self._host.kept.events(letter.session, item.seq - 1, 0 if upto is None else upto - item.seq + 1)
        if not events:
            return Standing(letter=letter, state="failed", at=letter.sent, words="Its conversation was erased.")
        turns = await self._outcomes.turns(letter, events)
        own = [event for event in events if event.turn in (turns or (events[0].turn,))]
        lines = await self._lines(letter, own)
        ends = {event.turn: event for event in own if isinstance(event.body, TurnEnded)}
        if turns is not None and all(turn in ends for turn in turns):
            return _over(letter, max(ends.values(), key=lambda event: event.seq), own, lines)
        return _open(letter, own, lines)

    async def _lines(self, letter: Letter, events: Sequence[Event]) -> tuple[Line, ...]:
        """Return the messages of a task: the client's as they were sent, and what the agent said."""
        found: list[Line] = []
        for event in events:
            body = event.body
            if isinstance(body, MessageReceived) and body.external_id.startswith(MARK):
                id = body.external_id.removeprefix(MARK).rpartition(":")[0]
                one = letter if id == letter.id else await self._letters.get(id)
                if one is not None and letter.id in (one.id, one.task):
                    found.append(Line(id=one.message_id or one.id, ours=False, parts=bare(body.parts)))
            elif isinstance(body, ModelReplied) and body.purpose == "turn":
                said = tuple(part for part in body.parts if isinstance(part, Text) and part.text.strip())
                if said:
                    found.append(Line(id=event.id, ours=True, parts=said))
        return tuple(found)


def _over(letter: Letter, end: Event, events: Sequence[Event], lines: tuple[Line, ...]) -> Standing:
    body = end.body
    state = _BY_ENDING.get(body.reason, "failed") if isinstance(body, TurnEnded) else "failed"
    said = [
        part
        for event in events
        if event.turn == end.turn and isinstance(event.body, MessageQueued)
        for part in event.body.parts
    ]
    words = body.sentence if isinstance(body, TurnEnded) and state != "completed" else ""
    answer = tuple(said) if state == "completed" else ()
    return Standing(letter=letter, state=state, at=end.at, words=words, answer=answer, lines=lines, turn=end.turn)


def _open(letter: Letter, events: Sequence[Event], lines: tuple[Line, ...]) -> Standing:
    answered = {event.body.approval_id for event in events if isinstance(event.body, ApprovalAnswered)}
    ended = {event.turn for event in events if isinstance(event.body, TurnEnded)}
    turn = next((event.turn for event in reversed(events) if event.turn not in ended), events[-1].turn)
    for event in events:
        asked = event.body
        if isinstance(asked, ApprovalAsked) and asked.approval_id not in answered and event.turn not in ended:
            words = asked.question or f"May {letter.to} use {asked.name}?"
            return Standing(
                letter=letter,
                state="asking",
                at=event.at,
                words=words,
                lines=lines,
                turn=turn,
                approval=asked.approval_id,
            )
    said = next((line for line in reversed(lines) if line.ours), None)
    words = "".join(part.text for part in said.parts if isinstance(part, Text)) if said else ""
    return Standing(letter=letter, state="working", at=events[-1].at, words=words, lines=lines, turn=turn)
