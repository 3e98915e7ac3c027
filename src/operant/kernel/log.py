"""The append-only history of every session, and everybody who follows it.

`record` decides an event's place at once, `flush` makes all that is recorded durable in one transaction. What depends
on an event happens after the flush; nobody outside sees an event before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from itertools import groupby
from typing import TypeVar
from weakref import WeakValueDictionary

from operant.kernel.errors import Conflict, OperantError
from operant.kernel.ports import Append, Clock, Head, Ids, Operation, Store
from operant.kernel.records import Body, Delta, Event, Record

T = TypeVar("T")

_QUEUE = 1_000
"""Events and deltas that wait for one follower. When full, deltas are dropped and events are read again later."""


class Stamp(Record):
    """Who an event is from, and whose usage it counts as."""

    agent: str = ""
    turn: str = ""
    actor: str = "kernel"
    user: str = ""
    background: bool = False
    copied: bool = False


async def finish(work: asyncio.Future[T]) -> T:
    """Wait for what cannot be undone; a cancellation is passed on once the outcome is known."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError as error:
            if work.cancelled():
                raise
            cancelled = error
        except OperantError:
            break
    if cancelled is not None:
        work.exception()
        raise cancelled
    return work.result()


class History:
    """One session's log in memory: where it ends and what is not written yet."""

    def __init__(self, key: str, log: Log) -> None:
        self.key = key
        self.seq = 0
        self.stale = False
        self.observers: list[Callable[[Event], None]] = []
        self._log = log
        self._pending: list[tuple[Stamp, Event]] = []
        self._also: list[Operation] = []
        self._lock = asyncio.Lock()
        self._head: Head | None = None
        self._loaded = False

    async def open(self) -> Head | None:
        """Find the end of the log; None when the session is new."""
        async with self._lock:
            if not self._loaded:
                self._head = await self._log.store.head(self.key)
                self.seq = max(self.seq, self._head.seq if self._head else 0)
                self._loaded = True
        return self._head

    async def record(self, stamp: Stamp, *bodies: Body) -> tuple[Event, ...]:
        """Give events their place; they are durable after `flush`. Raises `Conflict` when the history is stale."""
        if not self._loaded:
            await self.open()
        passed = [await self._log.redact(self.key, body) for body in bodies] if self._log.redact else bodies
        if self.stale:
            raise Conflict(f"The history of {self.key} changed under this turn; it is read again.")
        now = self._log.clock.now()
        made: list[Event] = []
        for body in passed:
            self.seq += 1
            event = Event(
                session=self.key,
                seq=self.seq,
                id=self._log.ids.new(),
                type=body.type,
                at=now,
                body=body,
                turn=stamp.turn,
                actor=stamp.actor,
            )
            made.append(event)
            self._pending.append((stamp, event))
            for observer in self.observers:
                observer(event)
        return tuple(made)

    def also(self, operation: Operation) -> None:
        """Carry out a store operation in the transaction of the next flush."""
        self._also.append(operation)

    async def flush(self) -> None:
        """Make everything recorded so far durable, then show it to the followers."""
        async with self._lock:
            pending, self._pending = self._pending, []
            also, self._also = self._also, []
            if not pending and not also:
                return
            work = self._log.store.submit(*_appends(pending), *also)
            try:
                await finish(work)
            except OperantError:
                self._log.forget(self)
                raise
            finally:
                if work.done() and not work.cancelled() and work.exception() is None:
                    self._log.publish([event for _, event in pending])

    async def append(self, stamp: Stamp, *bodies: Body) -> tuple[Event, ...]:
        """Record and flush."""
        events = await self.record(stamp, *bodies)
        await self.flush()
        return events


def _appends(pending: Sequence[tuple[Stamp, Event]]) -> list[Append]:
    """Group what is to be written by whose it is, in order."""
    return [
        Append(
            events=tuple(event for _, event in group),
            agent=stamp.agent,
            user=stamp.user,
            purse="background" if stamp.background else "chat",
            copied=stamp.copied,
        )
        for stamp, group in groupby(pending, key=lambda one: one[0])
    ]


class Follower:
    """A bounded queue of what one follower has not seen yet."""

    def __init__(self) -> None:
        self._queue: deque[Event | Delta] = deque()
        self._ready = asyncio.Event()

    def push(self, seen: Event | Delta) -> None:
        """Add without waiting; what there is no room for is read from the store later."""
        if len(self._queue) >= _QUEUE:
            return
        self._queue.append(seen)
        self._ready.set()

    async def take(self) -> Event | Delta:
        """Wait for the next one."""
        while not self._queue:
            self._ready.clear()
            await self._ready.wait()
        return self._queue.popleft()


class Log:
    """All histories."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self.store = store
        self.clock = clock
        self.ids = ids
        self.redact: Callable[[str, Body], Awaitable[Body]] | None = None
        self.watchers: list[Callable[[Event], None]] = []
        self._histories: WeakValueDictionary[str, History] = WeakValueDictionary()
        self._followers: dict[str, list[Follower]] = {}

    def history(self, key: str) -> History:
        """Return the one history of a session in this process."""
        found = self._histories.get(key)
        if found is None:
            found = self._histories[key] = History(key, self)
        return found

    def forget(self, history: History) -> None:
        """Let the next holder read a session anew; the old object accepts nothing more."""
        history.stale = True
        if self._histories.get(history.key) is history:
            del self._histories[history.key]

    def publish(self, events: Sequence[Event]) -> None:
        """Show committed events to everybody who follows."""
        for event in events:
            for watcher in self.watchers:
                watcher(event)
            self.show(event)

    def show(self, seen: Event | Delta) -> None:
        """Put an event or a delta before the followers of its session and of all sessions."""
        for key in (seen.session, ""):
            for follower in self._followers.get(key, ()):
                follower.push(seen)

    async def follow(self, session: str = "", after: int = -1) -> AsyncGenerator[Event | Delta, None]:
        """Yield events with seq > `after` (-1: only new ones) and deltas; an empty session follows all of them."""
        follower = Follower()
        self._followers.setdefault(session, []).append(follower)
        last = {session: after} if session else {}
        try:
            if session and after >= 0:
                async for event in self._missed(session, last):
                    yield event
            while True:
                seen = await follower.take()
                async for shown in self._unseen(seen, last, anew=not session):
                    yield shown
        finally:
            self._followers[session].remove(follower)
            if not self._followers[session]:
                del self._followers[session]

    async def _unseen(self, seen: Event | Delta, last: dict[str, int], anew: bool) -> AsyncGenerator[Event | Delta]:
        """Yield what a follower has not seen: nothing, this one, or this one and what its queue had no room for.

        With `anew`, the first event of a session says that what was there before it has been erased.
        """
        if isinstance(seen, Delta):
            yield seen
            return
        known = last.setdefault(seen.session, seen.seq - 1)
        if known + 1 == seen.seq or known < 0 or (anew and seen.seq == 1):
            last[seen.session] = seen.seq
            yield seen
        elif seen.seq > known:
            async for event in self._missed(seen.session, last):
                yield event

    async def _missed(self, session: str, last: dict[str, int]) -> AsyncGenerator[Event, None]:
        """Read what a follower's queue had no room for."""
        for event in await self.store.events(session, last[session]):
            last[session] = event.seq
            yield event
