"""Say where a session stands: the last few messages, and everything of a turn that is still open."""

from __future__ import annotations

from collections.abc import Sequence

from operant.cli.chat.pieces import Notice, Piece, Said, Words
from operant.cli.chat.story import Story
from operant.cli.inert import inert
from operant.kernel.records import Event, MessageQueued, MessageReceived, TurnEnded, text_of

READ = 400
"""Events that are read back from the end of a session."""
_MESSAGES = 4
_LINES = 12


def recap(events: Sequence[Event], story: Story) -> list[Piece]:
    """Return what to show on entering a session; the story goes on from there."""
    turn = _open_turn(events)
    end = events[-1].seq + 1 if events else 1
    open_from = next((event.seq for event in events if turn and event.turn == turn), end)
    earlier = [event for event in events if event.seq < open_from]
    pieces = [piece for event in earlier for piece in _message(event)][-_MESSAGES:]
    if pieces:
        pieces.insert(0, Notice("earlier in this session:"))
    if earlier:
        story.seq = earlier[-1].seq
    story.turn = turn
    for event in events:
        if event.seq >= open_from:
            pieces.extend(story.see(event))
    return pieces


def _open_turn(events: Sequence[Event]) -> str:
    """Return the turn that is open, or an empty text; its beginning may lie before the first of these events."""
    turn = ""
    for event in events:
        turn = "" if isinstance(event.body, TurnEnded) else event.turn or turn
    return turn


def _message(event: Event) -> list[Piece]:
    match event.body:
        case MessageReceived() as body:
            return [Said(_cut(inert(text_of(body.parts))), body.author)]
        case MessageQueued() as body:
            return [Words(_cut(inert(text_of(body.parts))))]
        case _:
            return []


def _cut(text: str) -> str:
    lines = text.strip().splitlines()
    return "\n".join(lines) if len(lines) <= _LINES else "\n".join([*lines[:_LINES], "", "…"])
