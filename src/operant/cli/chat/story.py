"""Fold what a session says into finished pieces, which stay, and a live end, which changes.

It knows no terminal: the same story is told by the chat, by `run` and by tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from operant.cli.calls import asked_for, parsed
from operant.cli.chat.pieces import Answered, Did, Notice, Over, Piece, Question, Said, Words
from operant.cli.inert import inert
from operant.kernel.records import (
    ApprovalAnswered,
    ApprovalAsked,
    ContextCompacted,
    Delta,
    Event,
    Json,
    MessageFailed,
    MessageQueued,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    Note,
    SessionChanged,
    ToolCall,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    text_of,
)

ASKS_FOR_OTHERS = "extension:subagents"
"""Whose notes are questions: nobody else can make one look like something that it is not."""
TAIL = 4_000
"""Characters of a running tool's output that are kept for its live lines."""


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
    _closing: dict[str, Question] = field(default_factory=dict[str, Question])
    _calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    _shown: str = ""  # words of this step that are finished pieces already
    _told: str = ""  # the last whole reply, to know it again when it is queued
    _sent: str = ""  # the last queued message, which a turn's end may repeat
    _began: int = 0

    @property
    def busy(self) -> bool:
        """Tell whether a turn is open, or a message of ours on its way to one."""
        return bool(self.turn or self.mine)

    def see(self, seen: Event | Delta) -> list[Piece]:
        """Take one more."""
        if isinstance(seen, Delta):
            return self._delta(seen)
        self.seq = seen.seq
        match seen.body:
            case MessageReceived() as body:
                return self._received(seen, body)
            case TurnStarted() as body:
                return self._started(seen, body)
            case ModelReplied(purpose="turn") as body:
                return self._replied(body)
            case ModelFailed() as body:
                return self._failed(body)
            case ToolStarted() as body:
                return self._runs(body)
            case ToolEnded() as body:
                return self._ended(body)
            case _:
                return self._rest(seen)

    def _rest(self, event: Event) -> list[Piece]:
        match event.body:
            case ApprovalAsked() as body:
                return self._asked(body)
            case ApprovalAnswered() as body:
                return self._answered(body)
            case Note() as body if event.actor == ASKS_FOR_OTHERS:
                return self._noted(body)
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

    def close(self, approval_id: str) -> None:
        """Note that a question has an answer, which is not on record yet."""
        question = self.questions.pop(approval_id, None)
        if question is not None:
            self._closing[approval_id] = question

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

    def _received(self, event: Event, body: MessageReceived) -> list[Piece]:
        if not self.turn:
            self.turn, self._began = event.turn, event.at  # its turn begins with the very next event
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

    def _runs(self, body: ToolStarted) -> list[Piece]:
        call = self._calls.get(body.call_id)
        arguments = asked_for(body.arguments, call.arguments) if call else body.arguments
        self.running[body.call_id] = Running(body.name, arguments, self.now())
        return []

    def _asked(self, body: ApprovalAsked) -> list[Piece]:
        asked = Question(body.approval_id, body.name, body.arguments, body.question)
        self.questions[body.approval_id] = asked
        return [asked]

    def _noted(self, body: Note) -> list[Piece]:
        """Show the questions of sub-agents, which are on record in sessions of their own."""
        try:
            if body.kind == "approval.asked":
                return self._asked(msgspec.convert({"call_id": "", "digest": "", **body.data}, ApprovalAsked))
            if body.kind == "approval.answered":
                return self._answered(msgspec.convert({"call_id": "", **body.data}, ApprovalAnswered))
        except msgspec.ValidationError:
            return []  # a note of another version
        return []

    def _ended(self, body: ToolEnded) -> list[Piece]:
        running = self.running.pop(body.call_id, None)
        call = self._calls.pop(body.call_id, None)
        name = body.name or (running.name if running else call.name if call else "tool")
        arguments = running.arguments if running else parsed(call.arguments) if call else {}
        took = body.duration_ms / 1_000 or (self.now() - running.since if running else 0.0)
        return [Did(name, arguments, body.outcome, took, inert(text_of(body.parts)))]

    def _answered(self, body: ApprovalAnswered) -> list[Piece]:
        self.close(body.approval_id)
        question = self._closing.pop(body.approval_id, None)
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
