"""What a chat shows for good, a piece each."""

from __future__ import annotations

from dataclasses import dataclass

from operant.kernel.records import Ending, Json, Outcome, Usage


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
