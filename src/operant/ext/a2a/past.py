"""What a session's history says about messages between agents: what led to a turn, and what was untrusted in it."""

from __future__ import annotations

from collections.abc import Sequence

from operant.ext.a2a.letter import MARK
from operant.sdk import Address, Event, MessageReceived, SessionInfo, ToolEnded, TurnEnded, TurnStarted

_OURS = frozenset({"malformed"})
"""Labels that say nothing about where words are from."""


class Past:
    """A session as its history stands."""

    def __init__(self, info: SessionInfo, events: Sequence[Event]) -> None:
        self.info = info
        self._events = events

    @property
    def turn(self) -> str:
        """Return the turn that is open; empty between turns."""
        for event in reversed(self._events):
            if isinstance(event.body, TurnEnded):
                return ""
            if isinstance(event.body, TurnStarted):
                return event.turn
        return ""

    @property
    def address(self) -> Address:
        """Return where its person is: where the last message came from."""
        for event in reversed(self._events):
            if isinstance(event.body, MessageReceived) and event.body.address is not None:
                return event.body.address
        info = self.info
        return Address(channel=info.channel or "local", chat=info.chat or info.key, thread=info.thread)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return every label of what has come into it: what follows from the untrusted is no more trusted."""
        found: set[str] = set()
        for event in self._events:
            if isinstance(event.body, MessageReceived | ToolEnded):
                found.update(event.body.labels)
        return tuple(sorted(found - _OURS))

    def causes(self) -> tuple[str, ...]:
        """Return the ids of the letters in the turn that is open."""
        turn = self.turn
        return tuple(
            event.body.external_id.removeprefix(MARK).rpartition(":")[0]
            for event in self._events
            if turn and event.turn == turn
            if isinstance(event.body, MessageReceived) and event.body.external_id.startswith(MARK)
        )
