"""Fold what a session says into finished pieces, which stay, and a live end, which changes.

It knows no terminal: the same story is told by the chat, by `run` and by tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from operant.cli.calls import parsed
from operant.cli.inert import inert
from operant.kernel.records import (
    ApprovalAnswered,
    ApprovalAsked,
    ContextCompacted,
    Delta,
    Ending,
    Event,
    Json,
    MessageFailed,
    MessageQueued,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    Outcome,
    SessionChanged,
    ToolCall,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
    text_of,
)

TAIL = 4_000
"""Characters of a running tool's output that are kept for its live lines."""


@dataclass(frozen=True)
class Said:
    """A message from a person."""

    text: str
    author: str = ""


@dataclass(frozen=True)
class Words:
    """A finished stretch of the answer, as Markdown."""

    text: str


@dataclass(frozen=True)
class Did:
    """A tool call that is over."""

    name: str
    arguments: Json
    outcome: Outcome
    seconds: float
    output: str


@dataclass(frozen=True)
class Question:
    """A call that waits for a person's yes or no."""

    approval_id: str
    name: str
    arguments: Json
    question: str


@dataclass(frozen=True)
class Answered:
    """What became of a question."""

    name: str
    answer: str
    by: str
    reason: str


@dataclass(frozen=True)
class Notice:
    """Something to know that is not part of the conversation."""

    text: str
    bad: bool = False


@dataclass(frozen=True)
class Over:
    """A turn that is over."""

    turn: str
    reason: Ending
    sentence: str
    usage: Usage
    steps: int
    seconds: float


Piece = Said | Words | Did | Question | Answered | Notice | Over


@dataclass
class Running:
    """A tool that runs now."""

    name: str
    arguments: Json
    since: float
    tail: str = ""


@dataclass
class Story:
    """Take events and deltas in order, and return the pieces that each of them finished.

    `now` is a clock in seconds; `mine` has the external ids of messages that are on the screen already.
    """

    now: Callable[[], float]
    mine: set[str] = field(default_factory=set[str])
    turn: str = ""
    partial: str = ""
    thinking: str = ""
    resumed: bool = False
    seq: int = 0
    running: dict[str, Running] = field(default_factory=dict[str, Running])
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    _calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    _shown: str = ""  # words of this step that are finished pieces already
    _told: str = ""  # the last whole reply, to know it again when it is queued
    _sent: str = ""  # the last queued message, which a turn's end may repeat
    _began: int = 0

    @property
    def busy(self) -> bool:
        """Tell whether a turn is open."""
        return bool(self.turn)

    def see(self, seen: Event | Delta) -> list[Piece]:
        """Take one more."""
        if isinstance(seen, Delta):
            return self._delta(seen)
        self.seq = seen.seq
        match seen.body:
            case MessageReceived() as body:
                return self._received(body)
            case TurnStarted() as body:
                return self._started(seen, body)
            case ModelReplied(purpose="turn") as body:
                return self._replied(body)
            case ModelFailed() as body:
                return self._failed(body)
            case ToolStarted() as body:
                self.running[body.call_id] = Running(body.name, body.arguments, self.now())
                return []
            case ToolEnded() as body:
                return self._ended(body)
            case ApprovalAsked() as body:
                asked = Question(body.approval_id, body.name, body.arguments, body.question)
                self.questions[body.approval_id] = asked
                return [asked]
            case ApprovalAnswered() as body:
                return self._answered(body)
            case _:
                return self._rest(seen)

    def _rest(self, event: Event) -> list[Piece]:
        match event.body:
            case MessageQueued() as body:
                return self._queued(body)
            case MessageFailed() as body:
                return [Notice(f"This could not be delivered: {body.error}", bad=True)]
            case ContextCompacted() as body:
                return [Notice(f"earlier turns are sent in a shorter form from here on ({body.strategy})")]
            case SessionChanged(model=str() as model):
                return [Notice(f"model: {model or 'the agent decides'}")]
            case TurnEnded() as body:
                return self._over(event, body)
            case _:
                return []

    # ------------------------------------------------------------------ deltas

    def _delta(self, delta: Delta) -> list[Piece]:
        if delta.turn and self.turn and delta.turn != self.turn:
            return []  # the end of a turn that is over
        match delta.kind:
            case "text":
                self.thinking = ""
                self.partial += delta.text
                return self._finished() if "\n" in delta.text else []
            case "reasoning":
                self.thinking = (self.thinking + delta.text)[-TAIL:]
                return []
            case "tool":
                call = self.running.get(delta.call_id)
                if call is not None:
                    call.tail = (call.tail + delta.text)[-TAIL:]
                return []
            case "notice":
                return [Notice(delta.text)]
            case "restart":
                return self._restarted(delta.text)

    def _finished(self) -> list[Piece]:
        """Take the whole blocks off the front of what has arrived."""
        cut = finished_upto(self.partial)
        if not cut:
            return []
        block, self.partial = self.partial[:cut], self.partial[cut:]
        self._shown += block
        return [Words(inert(block).strip("\n"))] if block.strip() else []

    def _restarted(self, why: str) -> list[Piece]:
        again = f"trying again: {why}" if why else "trying again"
        pieces: list[Piece] = [
            Notice(f"{again} (what is above of this answer no longer counts)" if self._shown else again)
        ]
        self._forget_step()
        return pieces

    def _forget_step(self) -> None:
        self.partial = self._shown = self.thinking = ""

    # ------------------------------------------------------------------ events

    def _received(self, body: MessageReceived) -> list[Piece]:
        if body.external_id in self.mine:
            self.mine.discard(body.external_id)
            return []
        return [Said(inert(text_of(body.parts)), body.author)]

    def _started(self, event: Event, body: TurnStarted) -> list[Piece]:
        self.turn = event.turn
        if body.trigger == "resume":
            pieces = self._unfinished()
            self.running.clear()
            return [*pieces, Notice("taken up again where it stopped")]
        self._began = event.at
        self._calls.clear()
        return []

    def _replied(self, body: ModelReplied) -> list[Piece]:
        """Show what the deltas have not: they may have been dropped, and a hook may have rewritten the reply."""
        self._calls |= {part.id: part for part in body.parts if isinstance(part, ToolCall)}
        text = text_of(body.parts)
        pieces: list[Piece] = []
        if text.startswith(self._shown):
            left = text[len(self._shown) :]
        else:
            pieces.append(Notice("the answer changed; this is what counts:"))
            left = text
        if left.strip():
            pieces.append(Words(inert(left).strip("\n")))
        self._forget_step()
        self._told = text
        return pieces

    def _failed(self, body: ModelFailed) -> list[Piece]:
        if body.purpose == "turn":
            return []  # a `restart` or the turn's end says it
        return [Notice(f"{body.purpose}: {body.sentence or body.error}")]

    def _ended(self, body: ToolEnded) -> list[Piece]:
        running = self.running.pop(body.call_id, None)
        call = self._calls.pop(body.call_id, None)
        name = body.name or (running.name if running else call.name if call else "tool")
        arguments = running.arguments if running else parsed(call.arguments) if call else {}
        return [Did(name, arguments, body.outcome, body.duration_ms / 1_000, inert(text_of(body.parts)))]

    def _answered(self, body: ApprovalAnswered) -> list[Piece]:
        question = self.questions.pop(body.approval_id, None)
        return [Answered(question.name if question else "", body.answer, body.by, inert(body.reason))]

    def _queued(self, body: MessageQueued) -> list[Piece]:
        text = text_of(body.parts)
        told, self._told, self._sent = self._told, "", text
        if text.strip() == told.strip():
            return []
        if told.strip() and text.startswith(told.strip()):
            text = text[len(told.strip()) :]
        return [*self._unfinished(), Words(inert(text).strip("\n"))] if text.strip() else []

    def _over(self, event: Event, body: TurnEnded) -> list[Piece]:
        pieces = self._unfinished()
        self.turn = ""
        self.running.clear()
        self.questions.clear()
        took = (event.at - self._began) / 1_000_000 if self._began else 0.0
        sentence = "" if body.sentence == self._sent else inert(body.sentence)
        return [*pieces, Over(event.turn, body.reason, sentence, body.usage, body.steps, took)]

    def _unfinished(self) -> list[Piece]:
        """Keep on the screen what was said before a step was cut off."""
        left = inert(self.partial).strip()
        self._forget_step()
        return [Words(left)] if left else []


def finished_upto(text: str) -> int:
    """Return where the last whole Markdown block ends: after a blank line that is not inside a code fence."""
    cut, at, fence = 0, 0, ""
    for line in text.splitlines(keepends=True):
        at += len(line)
        mark = line.strip()[:3]
        if mark in ("```", "~~~"):
            fence = "" if fence == mark else fence or mark
        elif not fence and not line.strip() and line.endswith("\n"):
            cut = at
    return cut
