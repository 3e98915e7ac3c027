"""Everybody who watches: one reader of all histories, and for each watcher a bounded queue of their own.

A watcher that is slow loses no event: what there is no room for is read from the store when they are ready. Deltas
wait as one text; of a tool's live output the end is kept. Nothing here can hold up a turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager

import msgspec

from operant.sdk import Client, Delta, Event, OperantError, Record, SessionHistory, ToolEnded, Unavailable

MOST_EVENTS = 1_000
"""Events that wait for one watcher; then they are forgotten here, and read from the store later."""
MOST_TEXT = 1 << 20
TAIL = 1 << 16
"""Characters of a tool's live output that wait for one watcher."""
_PAGE = 500
_AGAIN_S = 0.5

_log = logging.getLogger("operant.gateway")


class Reset(Record):
    """The history was erased; what follows is a new one."""

    session: str


Seen = Event | Delta | Reset
Read = Callable[[str, int], Awaitable[tuple[Event, ...]]]


class Viewer:
    """One watcher of one session, or (an empty one) of all sessions."""

    def __init__(self, session: str, after: int, read: Read) -> None:
        self.session = session
        self.last = after
        """Seq of the last event that was given out; -1: only what is new."""
        self._read = read
        self._queue: deque[Seen] = deque()
        self._ready = asyncio.Event()
        self._behind = bool(session) and after >= 0

    def offer(self, seen: Seen) -> None:
        """Add without waiting."""
        if isinstance(seen, Delta):
            self._join(seen)
        elif isinstance(seen, Event) and len(self._queue) >= MOST_EVENTS:
            self._overflow(seen)
        else:
            self._queue.append(seen)
        self._ready.set()

    async def seen(self) -> AsyncGenerator[Seen, None]:
        """Yield events in order, each once, and deltas in between."""
        while True:
            if self._behind:
                async for event in self._missed():
                    yield event
            while not self._queue:
                self._ready.clear()
                await self._ready.wait()
            one = self._queue.popleft()
            if isinstance(one, Reset):
                self.last = 0
                yield one
            elif isinstance(one, Delta) or not self.session:
                yield one
            else:
                async for shown in self._next(one):
                    yield shown

    async def _next(self, event: Event) -> AsyncGenerator[Seen, None]:
        if 0 <= self.last < event.seq - 1:
            self._queue.appendleft(event)
            self._behind = True
        elif event.seq > self.last:
            self.last = event.seq
            yield event
        elif event.type in SETTLING:  # it came from the store before; the text that led to it must go
            yield Delta(session=event.session, turn=event.turn, kind="restart")

    async def _missed(self) -> AsyncGenerator[Event, None]:
        """Read what there was no room for."""
        self._behind = False
        while events := await self._read(self.session, max(self.last, 0)):
            for event in events:
                self.last = event.seq
                yield event
            if len(events) < _PAGE:
                return

    def _join(self, delta: Delta) -> None:
        """Put a delta to the one before it when that has not gone out yet."""
        before = self._queue[-1] if self._queue else None
        if not isinstance(before, Delta) or _stream(before) != _stream(delta):
            if len(self._queue) < MOST_EVENTS:
                self._queue.append(delta)
            return
        text = before.text + delta.text
        text = text[-TAIL:] if delta.kind == "tool" else text[:MOST_TEXT]
        self._queue[-1] = msgspec.structs.replace(delta, text=text)

    def _overflow(self, event: Event) -> None:
        if self.session and self.last >= 0:
            self._queue.clear()
            self._behind = True
        else:  # nobody can say from where to read again: the oldest goes
            self._queue.popleft()
            self._queue.append(event)


class _Stage:
    """What is going on in one session, and who looks."""

    def __init__(self) -> None:
        self.seq = 0
        self.viewers: list[Viewer] = []
        self.partial: dict[tuple[str, str, str], Delta] = {}

    def take(self, seen: Event | Delta) -> None:
        """Keep what a watcher would need who comes now."""
        if isinstance(seen, Delta):
            self._keep(seen)
            return
        self.seq = seen.seq
        if isinstance(seen.body, ToolEnded):
            call = seen.body.call_id
            self.partial = {key: one for key, one in self.partial.items() if one.call_id != call}
        elif seen.type in SETTLING:
            self.partial.clear()

    def _keep(self, delta: Delta) -> None:
        if delta.kind == "restart":
            self.partial.clear()
            return
        if delta.kind == "notice":
            return
        key = _stream(delta)
        before = self.partial.get(key)
        text = (before.text if before else "") + delta.text
        text = text[-TAIL:] if delta.kind == "tool" else text[:MOST_TEXT]
        self.partial[key] = msgspec.structs.replace(delta, text=text)


class Hub:
    """Read everything once and show it to all who look."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client
        self._stages: dict[str, _Stage] = {}
        self._everything: list[Viewer] = []

    @property
    def watching(self) -> int:
        """Return how many watchers there are."""
        return len(self._everything) + sum(len(stage.viewers) for stage in self._stages.values())

    async def run(self) -> None:
        """Read until cancelled; a reader that breaks begins again, and the watchers read what they missed."""
        while True:
            try:
                async for seen in self._client().follow():
                    self._show(seen)
            except OperantError as error:
                _log.warning("nobody can watch for a moment: %s", error.sentence)
            await asyncio.sleep(_AGAIN_S)

    @contextmanager
    def viewer(self, session: str, after: int = -1) -> Generator[Viewer]:
        """Watch a session from after a seq on (-1: only what is new), or all of them (empty: only what is new)."""
        viewer = Viewer(session, after, self._history)
        stage = self._stages.setdefault(session, _Stage()) if session else None
        watchers = self._everything if stage is None else stage.viewers
        watchers.append(viewer)
        if stage is not None:
            stage.seq = max(stage.seq, after)
            for delta in stage.partial.values():
                viewer.offer(delta)
        try:
            yield viewer
        finally:
            watchers.remove(viewer)
            self._tidy(session)

    def reset(self, session: str) -> None:
        """Tell watchers that a history was erased."""
        stage = self._stages.get(session)
        if stage is not None:
            stage.seq = 0
            stage.partial.clear()
            for viewer in stage.viewers:
                viewer.offer(Reset(session=session))

    def _show(self, seen: Event | Delta) -> None:
        for viewer in self._everything:
            viewer.offer(seen)
        stage = self._stages.get(seen.session)
        if stage is None and isinstance(seen, Event):
            return  # nobody looks, and nothing streams that somebody might come to see
        if stage is None:
            stage = self._stages[seen.session] = _Stage()
        if isinstance(seen, Event) and seen.seq <= stage.seq and seen.seq == 1:
            self.reset(seen.session)
        stage.take(seen)
        for viewer in stage.viewers:
            viewer.offer(seen)
        self._tidy(seen.session)

    def _tidy(self, session: str) -> None:
        stage = self._stages.get(session)
        if stage is not None and not stage.viewers and not stage.partial:
            del self._stages[session]

    async def _history(self, session: str, after: int) -> tuple[Event, ...]:
        try:
            return await self._client().call(SessionHistory(session=session, after=after, limit=_PAGE))
        except OperantError as error:
            if isinstance(error, Unavailable):
                raise
            return ()  # there is no such session yet


SETTLING = frozenset({"model.replied", "turn.ended"})
"""Events after which the streamed text before them stands on record."""


def _stream(delta: Delta) -> tuple[str, str, str]:
    return (delta.turn, delta.kind, delta.call_id)
