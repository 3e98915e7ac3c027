"""Read a person's answer to a question about a tool call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HELP = "y once · s for this session · n no, or `n because …`"

_ALLOW = {"y", "yes", "allow", "ok"}
_SESSION = {"s", "session", "always"}
_DENY = {"n", "no", "deny"}


@dataclass(frozen=True)
class Answer:
    """A yes or no, how long it stands, and why."""

    answer: Literal["allow", "deny"]
    scope: Literal["once", "session"] = "once"
    reason: str = ""


def read_answer(line: str) -> Answer | None:
    """Return the answer that a line is, or None when it is something else."""
    first, _, rest = line.strip().partition(" ")
    word = first.rstrip(",.:;").lower()
    if word in _DENY:
        return Answer("deny", reason=rest.strip())
    if rest.strip():
        return None
    if word in _ALLOW:
        return Answer("allow")
    return Answer("allow", scope="session") if word in _SESSION else None
