"""The words in which an agent reads what another one wrote."""

from __future__ import annotations

from operant.ext.a2a.letter import Letter
from operant.kit.envelope import enveloped
from operant.sdk import A2aKind, Part, Text

OUTSIDE = "outside"

_OWED: dict[A2aKind, str] = {
    "wake": "It waits for your answer: what you say at the end of this turn is sent back.",
    "notify": "No answer is owed, and none is sent.",
    "silent": "It is for your information.",
}


def asked(letter: Letter, text: str) -> tuple[Part, ...]:
    """Say a message to its receiver."""
    return _said(letter, f"Message from {_name(letter.sender)}. {_OWED[letter.kind]}", text, letter.sender)


def answered(letter: Letter, text: str, labels: tuple[str, ...], *, late: bool) -> tuple[Part, ...]:
    """Say an answer to the sender."""
    after = " It comes after its time." if late else ""
    head = f"Answer of {_name(letter.to)} to your message ({letter.about!r}).{after}"
    return _said(letter, head, text or "(It said nothing.)", letter.to, labels)


def overdue(letter: Letter) -> tuple[Part, ...]:
    """Say to the sender that no answer came in time."""
    minutes = (letter.deadline - letter.sent) / 60_000_000
    return (
        Text(
            text=f"No answer of {_name(letter.to)} came within {minutes:g} minutes to your message "
            f"({letter.about!r}). If one still comes, you are told."
        ),
    )


def title(sender: str) -> str:
    """Name a session with another agent."""
    return f"Messages from {sender}"


def _said(letter: Letter, head: str, text: str, source: str, labels: tuple[str, ...] | None = None) -> tuple[Part, ...]:
    if OUTSIDE in (letter.labels if labels is None else labels):
        text = enveloped(text, source, letter.id[-12:])
    return (Text(text=f"[{head}]\n{text}"),)


def _name(who: str) -> str:
    return "the owner" if who == "owner" else who
