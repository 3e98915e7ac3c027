"""Keep one service running: start it, watch it, put a new version in place of an old one without a gap."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context
from typing import Any, Literal, Protocol

from operant.ext.services.declared import Declared
from operant.ext.services.generation import Clerk, Generation, Plan, Unfit
from operant.ext.services.pace import Pace
from operant.ext.services.wire import HookWanted
from operant.sdk import Clock, Record, Unavailable

State = Literal["ungranted", "stopped", "waiting", "starting", "running", "degraded", "failed"]
MOST_OLD = 2
"""Generations that may go on for turns that began with them; the oldest ends when there are more."""

_log = logging.getLogger("operant.services")


class Target(Record):
    """What is to run: one content of a skill that was allowed."""

    declared: Declared
    digest: str


class Workshop(Protocol):
    """Whoever makes what a generation is started from."""

    async def prepare(self, target: Target, number: int) -> tuple[Plan, Clerk]:
        """Make ready what is to be started. Raises `Unfit`."""
        ...

    async def examine(self, fresh: Generation) -> None:
        """Look at what it registers. Raises `Unfit`."""
        ...

    def tell(self, state: State, reason: str) -> None:
        """Tell that it stands differently now."""
        ...


class Keeper:
    """One service; `changed` is called when another generation is the one that is asked, or none is."""

    def __init__(self, name: str, workshop: Workshop, clock: Clock, changed: Callable[[Keeper], None]) -> None:
        self.name = name
        self.state: State = "ungranted"
        self.reason = ""
        self.since = clock.now()
        self.starts = 0
        self.current: Generation | None = None
        self.expected: Generation | None = None
        self.busy: set[str] = set()
        self._olds: list[Generation] = []
        self._workshop = workshop
        self._clock = clock
        self._changed = changed
        self._target: Target | None = None
        self._idle: State = "ungranted"
        self._anew = False
        self._left = False
        self._leaving = False
        self._nudged = asyncio.Event()
        self._settled = asyncio.Event()
        self._ready = asyncio.Event()
        self._pace = Pace()
        self._group: asyncio.TaskGroup | None = None
        self._starting: asyncio.Timeout | None = None

    # ------------------------------------------------------------------ what the owner wants

    def want(self, target: Target | None, otherwise: State = "ungranted") -> None:
        """Run this from now on; None: run nothing and be `otherwise`."""
        if target == self._target and otherwise == self._idle:
            return
        self._target, self._idle = target, otherwise
        if self.state == "degraded" and target and self.current and self.current.plan.digest == self.digest:
            self._be("running", "")  # what runs is what is wanted again
        self._begin_anew()

    def again(self) -> None:
        """Start anew, also what failed."""
        self._anew = True
        self._begin_anew()

    def end(self) -> None:
        """Stop for good."""
        self._left = True
        self._nudge()

    def broke(self, reason: str) -> None:
        """Note that it can be kept no more; its guards refuse."""
        self._be("failed", reason)
        self._settled.set()

    @property
    def digest(self) -> str:
        """Return the content that is to run."""
        return self._target.digest if self._target else ""

    @property
    def running(self) -> set[str]:
        """Return the contents that run or are about to."""
        there = (*self._olds, *((self.current,) if self.current else ()))
        return {self.digest, *(one.plan.digest for one in there)} - {""}

    @property
    def allowed(self) -> Declared | None:
        """Return what the content that is to run declares."""
        return self._target.declared if self._target else None

    @property
    def hooks(self) -> tuple[HookWanted, ...]:
        """Return where it hooks: the current version, and then those that turns began with and that go on with them."""
        there = (*((self.current,) if self.current else ()), *(old for old in self._olds if old.pinned and old.alive))
        found: dict[tuple[str, str], HookWanted] = {}
        for one in there:
            found = {**one.asks, **found}
        return tuple(found.values())

    @property
    def enabled(self) -> bool:
        """Tell whether it is to run: its guards then refuse while it does not."""
        return self._target is not None

    @property
    def remote(self) -> bool:
        """Tell whether it runs elsewhere and may connect."""
        return self._target is not None and self._target.declared.remote

    async def expecting(self, seconds: float) -> Generation | None:
        """Return the generation that a service which connects now is to be; a connection before it is given up."""
        if self.expected is None or self.expected.entered:
            self._ready.clear()
            self.again()
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        except TimeoutError:
            return None
        return None if self.expected is None or self.expected.entered else self.expected

    async def settled(self) -> None:
        """Wait until it runs, or it is clear that it does not."""
        await self._settled.wait()

    # ------------------------------------------------------------------ what is asked

    async def serving(self, session: str) -> Generation:
        """Return the generation to ask for a session: the one that its turn began with. Raises `Unavailable`."""
        for old in self._olds:
            if session in old.pinned and old.alive:
                return old
        if self.state == "starting" and self.current is None:
            await self._settled.wait()
        if self.current is not None and self.current.alive:
            return self.current
        why = f"The service {self.name} is not running ({self.reason or self.state})."
        raise Unavailable(f"{why} `operant skill logs {self.name}` says more.")

    def over(self, session: str) -> None:
        """Note that the turn of a session is over."""
        self.busy.discard(session)
        done = [old for old in self._olds if session in old.pinned]
        for old in done:
            old.pinned.discard(session)
            if not old.pinned:
                old.leave("another version is in its place")
        if done:
            self._changed(self)

    # ------------------------------------------------------------------ the life of it

    async def live(self) -> None:
        """Keep it until `end`; everything that it started ends with this."""
        async with asyncio.TaskGroup() as self._group:
            try:
                while not self._left:
                    await self._step()
            finally:
                self._leaving = True
                for one in (*self._olds, *((self.current,) if self.current else ())):
                    one.leave("Operant ends")
                self._settled.set()

    async def _step(self) -> None:
        self._nudged.clear()
        target, current = self._target, self.current
        if current is not None and current.gone.is_set():
            await self._crashed(current)
        elif target is None:
            self._retire(current)
            for one in (*self._olds, *((current,) if current else ())):
                one.leave("it is stopped")
                await one.ended.wait()
            self._olds = []
            self._be(self._idle, "")
            self._settled.set()
            await self._nudged.wait()
        elif current is not None and current.plan.digest == target.digest and not self._anew:
            self._settled.set()
            await self._watch(current)
        else:
            self._anew = False
            await self._start(target)

    async def _watch(self, current: Generation, seconds: float | None = None) -> None:
        """Wait until it is gone, or something else is wanted, but not longer than this."""
        assert self._group is not None
        gone = self._group.create_task(current.gone.wait())
        nudged = self._group.create_task(self._nudged.wait())
        await asyncio.wait((gone, nudged), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        nudged.cancel()

    async def _start(self, target: Target) -> None:
        replaces = self.current
        if replaces is None:
            self._settled.clear()
            self._be("starting", self.reason)  # why it ended the last time
        self.starts += 1
        self._pace.started(self._clock.monotonic())
        if target.declared.remote and replaces is None:
            self._be("waiting", "it has not connected")
            self._settled.set()
        try:
            async with asyncio.timeout(None) as self._starting:
                fresh = await self._born(target)
        except Unfit as unfit:
            self._starting = None
            await self._failed(str(unfit), replaces, final=unfit.final)
            return
        except TimeoutError:  # something else is wanted by now
            return
        self._starting = None
        self.current = fresh
        fresh.welcome()
        self._be("running", "")
        self._retire(replaces)
        self._changed(self)
        self._settled.set()

    async def _born(self, target: Target) -> Generation:
        assert self._group is not None
        plan, clerk = await self._workshop.prepare(target, self.starts)
        fresh = Generation(plan, clerk)
        group = self._group

        def spawn(work: Any, context: Context) -> asyncio.Task[None] | None:
            if self._leaving:
                work.close()
                return None
            return group.create_task(work, context=context)

        clerk.spawn = spawn
        group.create_task(fresh.live())
        self.expected = fresh if target.declared.remote else None
        self._ready.set()
        fits = False
        try:
            await fresh.registered()
            await self._workshop.examine(fresh)
            fits = True
        except Unfit as unfit:
            fresh.refuse(str(unfit))
            raise
        finally:
            if not fits:
                fresh.leave("it did not register")
                await fresh.ended.wait()
        return fresh

    async def _crashed(self, gone: Generation) -> None:
        self.current = None
        self._changed(self)
        await gone.ended.wait()  # its exit code says whether to try again
        await self._failed(gone.reason, None, final=gone.final)

    async def _failed(self, reason: str, still: Generation | None, *, final: bool) -> None:
        """Say what went wrong, and wait: for the next try, or for somebody to change something."""
        _log.warning("the service %s: %s", self.name, reason)
        if self._target is not None and self._target.declared.remote:  # it comes when it comes
            self._be("waiting", reason)
            return
        wait_s = None if final else self._pace.wait_s(self._clock.monotonic())
        if still is not None and still.alive:
            self._be("degraded", f"the new version did not start: {reason}")
            self._settle()
            await self._watch(still, wait_s)
            return
        self._be("failed" if wait_s is None else "waiting", reason)
        self._settle()
        try:
            async with asyncio.timeout(wait_s):
                await self._nudged.wait()
        except TimeoutError:
            return

    def _retire(self, old: Generation | None) -> None:
        """Let one go that is not the current one any more, once the turns that began with it are over."""
        if old is None:
            return
        if self.current is old:
            self.current = None
            self._changed(self)
            old.leave("it is stopped")
            return
        old.pinned = set(self.busy)
        if not old.pinned:
            old.leave("another version is in its place")
            return
        self._olds = [one for one in self._olds if not one.gone.is_set()]
        self._olds.append(old)
        while len(self._olds) > MOST_OLD:
            self._olds.pop(0).leave("two newer versions are in its place")

    def _be(self, state: State, reason: str) -> None:
        changed = state != self.state
        if changed:
            self.since = self._clock.now()
        self.state, self.reason = state, reason
        if changed:
            self._workshop.tell(state, reason)

    def _settle(self) -> None:
        """Let those go on who wait to hear how it stands, unless something else is wanted by now."""
        if not self._nudged.is_set():
            self._settled.set()

    def _begin_anew(self) -> None:
        self._pace.forget()
        self._settled.clear()
        self._nudge()

    def _nudge(self) -> None:
        """Have it look again at what is wanted; a start that is not over is given up."""
        self._nudged.set()
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.reschedule(0)


def slowly(generation: Generation | None) -> str:
    """Say whether a generation that runs is slow to answer; an empty text when it is not."""
    return f"it missed {generation.missed} heartbeats" if generation and generation.missed >= 2 else ""
