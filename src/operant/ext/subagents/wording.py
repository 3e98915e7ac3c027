"""Words about sub-agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from operant.ext.subagents.history import Outcome
from operant.ext.subagents.roster import Child

_TITLE = 60

ABOUT = """\
Give whole tasks to sub-agents: each works in a session of its own with your files and at most your tools, and knows \
only its task. Several tasks of one call run side by side. Returns what each says at its end."""

NOTE = (
    "[You are a sub-agent: this message is your whole task, from the agent {parent}. Your last message is all that it "
    "gets: put the result there, whole and short. Nobody answers questions.]"
)


def about(helpers: Mapping[str, str]) -> str:
    """Describe the tool to an agent."""
    if not helpers:
        return ABOUT
    lines = "\n".join(f"- {name}: {words}" if words else f"- {name}" for name, words in helpers.items())
    return f"{ABOUT}\nHelpers:\n{lines}"


def title_of(task: str) -> str:
    """Call a session by what it is for."""
    words = " ".join(task.split())
    return words if len(words) <= _TITLE else f"{words[: _TITLE - 1]}…"


def report(children: Sequence[Child], outcomes: Sequence[Outcome]) -> str:
    """Say what came of each."""
    pieces: list[str] = []
    for child, outcome in zip(children, outcomes, strict=True):
        ended = outcome.reason if outcome.reason == "done" else f"ended early ({outcome.reason})"
        head = f"[sub-agent {child.number}: {title_of(child.task)} — {ended}]"
        pieces.append(f"{head}\n{outcome.text.strip() or '(it said nothing)'}")
    return "\n\n".join(pieces)
