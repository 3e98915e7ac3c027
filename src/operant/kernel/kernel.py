"""The kernel put together: what extensions register with, what callers call, and how it starts and stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import msgspec

from operant.kernel.compute import Compute
from operant.kernel.crew import Crew
from operant.kernel.errors import OperantError
from operant.kernel.gate import Gate
from operant.kernel.hooks import Hooks
from operant.kernel.house import House
from operant.kernel.log import Log
from operant.kernel.mailbox import Inbox, Outbox
from operant.kernel.points import (
    APPEND_BEFORE,
    APPROVAL_ANSWERED,
    APPROVAL_ASKED,
    DAEMON_STARTED,
    DAEMON_STOPPING,
    MODEL_FAILED,
    SESSION_ARCHIVED,
    SESSION_OPENED,
    TURN_ENDED,
    TURN_STARTED,
    AppendInput,
    AppendOutput,
    Happened,
    Nothing,
    Plain,
    Point,
    Reject,
)
from operant.kernel.ports import Agents, Clock, Faults, Ids, Store
from operant.kernel.prefix import Prefix
from operant.kernel.records import Body, Delta, Event, MessageQueued, Principal, SessionChanged
from operant.kernel.session import Sessions
from operant.kernel.syscalls import Syscall, Syscalls

R = TypeVar("R")

_log = logging.getLogger("operant.kernel")

MAX_TURNS = 1_000

_TOLD: dict[str, Point[Happened, Nothing]] = {
    "turn.started": TURN_STARTED,
    "turn.ended": TURN_ENDED,
    "session.opened": SESSION_OPENED,
    "approval.asked": APPROVAL_ASKED,
    "approval.answered": APPROVAL_ANSWERED,
    "model.failed": MODEL_FAILED,
}


def no_faults(point: str) -> None:
    """Stop nowhere."""


class Kernel:
    """One running system; two of them in one process do not know of each other."""

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, agents: Agents, *, faults: Faults = no_faults, version: str = ""
    ) -> None:
        self.version = version
        self.store = store
        self.clock = clock
        self.ids = ids
        self.agents = agents
        self.faults = faults
        self.hooks = Hooks()
        self.log = Log(store, clock, ids)
        self.gate = Gate(self.hooks)
        self.compute = Compute(self.hooks, self.log, clock, faults)
        self.inbox = Inbox(store, faults)
        self.outbox = Outbox(self.log, clock, ids, faults)
        self.house = House(
            hooks=self.hooks,
            log=self.log,
            gate=self.gate,
            compute=self.compute,
            prefix=Prefix(self.hooks, store),
            inbox=self.inbox,
            outbox=self.outbox,
            clock=clock,
            ids=ids,
            faults=faults,
        )
        self.sessions = Sessions(self.house, agents, MAX_TURNS)
        self.syscalls = Syscalls()
        self.accepting = False
        self.started = 0
        self.extensions: tuple[str, ...] = ()
        self.pid = 0
        self.problems: Callable[[], Sequence[str]] = tuple
        self.stopping = asyncio.Event()
        self._crew = Crew()
        self.log.watchers.append(self._happened)

    async def call(self, principal: Principal, call: Syscall[R]) -> R:
        """Make a syscall."""
        return await self.syscalls(principal, call)

    def follow(self, session: str = "", after: int = -1) -> AsyncGenerator[Event | Delta, None]:
        """Follow a session, or all of them; see `Log.follow`."""
        return self.log.follow(session, after)

    @asynccontextmanager
    async def running(self, *, work: bool = True) -> AsyncGenerator[None]:
        """Be ready inside the context; with `work`, take up what is unfinished, else only answer calls."""
        if self.hooks.has(APPEND_BEFORE):
            self.log.redact = self._redact
        async with AsyncExitStack() as stack:
            for part in (self.hooks, self._crew, self.outbox, self.sessions.crew):
                await stack.enter_async_context(part)
            self.started = self.clock.now()
            self.accepting = True
            if work:
                for channel in self.outbox.channels:
                    await stack.enter_async_context(channel.open())
                await self.recover()
                self._crew.spawn(self._watch_store())
                self.hooks.emit(DAEMON_STARTED, Plain(what=self.version))
            try:
                yield
            finally:
                self.accepting = False

    async def recover(self) -> None:
        """Take up every open turn and every waiting message, in and out."""
        for key in await self.store.unfinished():
            session = self.sessions.get(key)
            if not session.working:
                await self.inbox.reload(key)
                session.wake()
        await self.outbox.recover()

    async def drain(self, seconds: float) -> int:
        """Accept nothing more and let turns end; return how many did not make it (they go on at the next start)."""
        self.accepting = False
        self.hooks.emit(DAEMON_STOPPING, Plain())
        until = self.clock.monotonic() + seconds
        while self.sessions.busy and self.clock.monotonic() < until:
            await self.clock.sleep(0.02)
        return len(self.sessions.working)

    async def _watch_store(self) -> None:
        while True:
            await self.store.recovered()
            _log.info("the store accepts again; taking up what is unfinished")
            try:
                await self.recover()
            except OperantError as error:
                _log.warning("could not take up what is unfinished: %s", error.sentence)

    async def _redact(self, session: str, body: Body) -> Body:
        about = AppendInput(session=session, type=body.type)
        before = msgspec.json.encode(body).decode()
        ruling = await self.hooks.run(APPEND_BEFORE, about, AppendOutput(body=before))
        if isinstance(ruling.verdict, Reject):
            raise OperantError(f"An event was refused: {ruling.verdict.reason}")
        if ruling.output.body is before or ruling.output.body == before:
            return body
        return msgspec.json.decode(ruling.output.body, type=type(body))

    def _happened(self, event: Event) -> None:
        """React to what was committed: post messages, tell observers."""
        body = event.body
        if isinstance(body, MessageQueued):
            self.outbox.queued(event.session, body, event.at)
        elif isinstance(body, SessionChanged) and body.archived:
            self.hooks.emit(SESSION_ARCHIVED, Happened(event=event))
        point = _TOLD.get(event.type)
        if point is not None:
            self.hooks.emit(point, Happened(event=event))
