"""Programs that a session keeps running between its turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from operant.kit.background import Background, started
from operant.kit.spool import Spool
from operant.sdk import CallContext, Conflict, Happened, Host, KvList, KvSet, Launch, NotFound, Record, SessionAppend

KEPT_BYTES = 4_000_000
MOST_RUNNING = 8
"""Programs that one session keeps at once."""
MOST_ENDED = 16
"""Ended ones whose output can still be read."""
_KEPT_S = 7 * 86_400.0
_NAMESPACE = "processes"

Launching = Callable[[CallContext, str, str, bool], AbstractAsyncContextManager[Launch]]
"""Make a command ready: call, command, directory, whether it wants a terminal."""


class Told(Record):
    """What is on record of a process; times in microseconds, 0 for not yet."""

    id: str
    command: str
    began: int
    ended: int = 0
    code: int | None = None
    lost: bool = False


class Process:
    """One program of a session."""

    def __init__(self, told: Told, program: Background, spool: Spool) -> None:
        self.told = told
        self.program = program
        self.spool = spool
        self.read_upto = 0
        self.asked_at = 0
        self.more = asyncio.Event()
        """Set whenever it said something, or ended."""

    @property
    def running(self) -> bool:
        """Tell whether it has not ended."""
        return not self.program.exited.is_set()


class Keeper:
    """The programs of all sessions; all of them end when it does."""

    def __init__(self, host: Host, launching: Launching) -> None:
        self._host = host
        self._launching = launching
        self._sessions: dict[str, dict[str, Process]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._leaving = False

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Keeper]:
        """Keep programs while the context is open."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield self
            finally:
                self._leaving = True
                for session in list(self._sessions):
                    await self.forget(session)

    async def start(self, call: CallContext, command: str, cwd: str, terminal: bool) -> Process:
        """Start a program for a session. Raises `Conflict`, `Unavailable` or `CannotStart`."""
        there = self._sessions.setdefault(call.session, {})
        if sum(one.running for one in there.values()) >= MOST_RUNNING:
            raise Conflict(f"{MOST_RUNNING} processes run already.", "End one with signal_process first.")
        self._thin_out(there)
        before = await self._told(call.session)
        told = Told(
            id=f"p{1 + max((int(one.id[1:]) for one in before), default=0)}",
            command=command,
            began=self._host.clock.now(),
        )
        folder = Path(self._host.state) / "processes"
        folder.mkdir(mode=0o700, exist_ok=True)
        spool = Spool(folder / f"{self._host.ids.new()}.out", KEPT_BYTES)
        heard = _Heard(spool)
        async with AsyncExitStack() as stack:
            stack.callback(spool.close)
            launching = self._launching(call, command, cwd, terminal)
            lasting = AsyncExitStack()
            launch = await lasting.enter_async_context(launching)
            stack.push_async_exit(lasting)
            process = Process(told, await started(launch, heard, terminal=terminal), spool)
            stack.pop_all()
        heard.process = process
        there[told.id] = process
        await self._keep(call.session, told)
        if self._group is not None:
            self._group.create_task(self._watch(call.session, process, lasting))
        return process

    def get(self, session: str, id: str) -> Process:
        """Return a process of a session. Raises `NotFound`."""
        there = self._sessions.get(session, {})
        if id not in there:
            names = ", ".join(there) or "none"
            raise NotFound(f"This session has no process {id!r}.", f"There are: {names}.")
        return there[id]

    async def told(self, session: str) -> list[Told]:
        """Return what is known of all processes of a session, also those that ended with an earlier Operant."""
        there = self._sessions.get(session, {})
        return [
            one if one.ended or one.id in there else msgspec.structs.replace(one, lost=True)
            for one in await self._told(session)
        ]

    async def archived(self, input: Happened) -> None:
        """End the programs of a session that was put away."""
        await self.forget(input.event.session)

    async def forget(self, session: str) -> None:
        """End the programs of a session, and forget what they said."""
        for process in self._sessions.pop(session, {}).values():
            await process.program.end()
            process.spool.close()

    async def _watch(self, session: str, process: Process, lasting: AsyncExitStack) -> None:
        """Wait for the end, tidy up and put it on record; what Operant ends by leaving is `lost` at its next start."""
        async with lasting:
            await process.program.exited.wait()
            await process.program.end()
        process.more.set()
        if self._leaving:
            return
        code, told = process.program.code, process.told
        process.told = msgspec.structs.replace(told, ended=self._host.clock.now(), code=code)
        await self._keep(session, process.told)
        text = f"{told.id} ended with code {code}: {told.command}"
        await self._host.call(SessionAppend(session=session, kind="process.ended", text=text))

    def _thin_out(self, there: dict[str, Process]) -> None:
        """Forget the oldest of those that have ended."""
        ended = [id for id, one in there.items() if not one.running]
        for id in ended[: max(0, len(ended) - MOST_ENDED)]:
            there.pop(id).spool.close()

    async def _told(self, session: str) -> list[Told]:
        found = await self._host.call(KvList(namespace=_NAMESPACE, prefix=f"{session}:"))
        told = [msgspec.json.decode(value, type=Told) for value in found.values()]
        return sorted(told, key=lambda one: int(one.id[1:]))

    async def _keep(self, session: str, told: Told) -> None:
        value = msgspec.json.encode(told).decode()
        await self._host.call(KvSet(namespace=_NAMESPACE, key=f"{session}:{told.id}", value=value, ttl_s=_KEPT_S))


class _Heard:
    """Take a program's words, also those that come before there is a process to give them to."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.process: Process | None = None

    def __call__(self, data: bytes) -> None:
        self._spool.write(data)
        if self.process is not None:
            self.process.more.set()
