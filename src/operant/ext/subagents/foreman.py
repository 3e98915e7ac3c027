"""Have tasks done: open sessions, hand them over through the one inbox, wait for their ends, stop them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec

from operant.ext.subagents.history import Origin, Outcome, Reading, origin_of
from operant.ext.subagents.patience import Patience
from operant.ext.subagents.roster import Child, Roster
from operant.ext.subagents.settings import SubagentSettings
from operant.ext.subagents.wording import report, title_of
from operant.sdk import (
    OWNER,
    CallContext,
    Event,
    Host,
    MessageReceived,
    OperantError,
    Output,
    Refused,
    SessionDispatch,
    SessionGet,
    SessionOpen,
    SessionStop,
    Text,
    ToolStarted,
)

_FOR = "agent:"
"""Label of a result that came in as a message: whose it is."""


class Order(msgspec.Struct, frozen=True):
    """What a call asks for."""

    tasks: tuple[str, ...]
    agent: str
    wait: bool


class Foreman:
    """Run sub-agents. What they are is in the roster; here is only what lives as long as this process."""

    def __init__(self, host: Host, settings: SubagentSettings, roster: Roster) -> None:
        self._host = host
        self._settings = settings
        self._roster = roster
        self._pools: dict[int, asyncio.Semaphore] = {}
        self._patience = Patience(host)
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reporting: set[str] = set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Look after sub-agents that nobody waits for, while the context is open."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                for task in self._tasks:
                    task.cancel()
                self._group = None

    async def order(self, call: CallContext, order: Order) -> list[Child]:
        """Put sub-agents on record, once for a call however often it is run. Raises `Refused`."""
        known = await self._roster.all()
        keys = [f"agents/{call.key}/{number}" for number in range(1, len(order.tasks) + 1)]
        if keys[0] in known:
            return [known[key] for key in keys]
        self._host.agents.get(order.agent)
        mine = known.get(call.session)
        root, turn = (mine.root, mine.root_turn) if mine else (call.session, call.turn)
        there = len(await self._roster.of_turn(root, turn))
        if there + len(keys) > self._settings.per_turn:
            raise Refused(
                f"A turn may have {self._settings.per_turn} sub-agents, and this one has had {there}.",
                "Do the rest yourself.",
            )
        origin = await self._origin(call, mine)
        children = [
            Child(
                session=key,
                number=number,
                agent=order.agent,
                task=task,
                parent=call.session,
                turn=call.turn,
                parent_agent=call.agent.name,
                root=root,
                root_turn=turn,
                wait=order.wait,
                author=origin.author,
                labels=origin.labels,
                address=origin.address,
            )
            for number, (key, task) in enumerate(zip(keys, order.tasks, strict=True), 1)
        ]
        await self._roster.keep(*children)
        return children

    async def outcomes(self, children: list[Child], output: Output) -> list[Outcome]:
        """Have sub-agents work side by side, and return what came of each."""
        at_once = asyncio.Semaphore(self._settings.at_once)

        async def one(child: Child) -> Outcome:
            async with at_once:
                return await self._work(child, output)

        async with asyncio.TaskGroup() as group:
            working = [group.create_task(one(child)) for child in children]
        return [task.result() for task in working]

    def send_off(self, children: list[Child]) -> None:
        """Have sub-agents work without anybody waiting; each reports to its parent's session when it has ended."""
        for child in children:
            if child.session not in self._reporting:  # a call that is run again finds what the start took up
                self._reporting.add(child.session)
                self._spawn(self._report(child))

    async def stop(self, children: list[Child]) -> None:
        """Stop sub-agents for good: also one that has not begun yet never will."""
        going = [msgspec.structs.replace(one, state="stopped") for one in children if one.state == "open"]
        if not going:
            return
        await self._roster.keep(*going)
        for child in going:
            await self._host.call(SessionStop(session=child.session))

    async def _work(self, child: Child, output: Output) -> Outcome:
        async with self._pool(child.depth):
            if await self._state(child) == "stopped":
                return Outcome(reason="stopped")
            await self._begin(child)
            outcome = await self._ended(child, output)
        if child.wait and await self._state(child) == "open":
            await self._roster.keep(msgspec.structs.replace(child, state="done"))
        return outcome

    async def _begin(self, child: Child) -> None:
        """Hand a task over; a second time does nothing."""
        await self._host.call(
            SessionOpen(session=child.session, agent=child.agent, title=title_of(child.task), parent=child.parent)
        )
        await self._host.call(
            SessionDispatch(
                session=child.session,
                parts=(Text(text=child.task),),
                agent=child.agent,
                author=child.author,
                external_id=child.session,
                trigger="agent",
                labels=child.labels,
            )
        )

    async def _ended(self, child: Child, output: Output) -> Outcome:
        if not child.wait:
            return await self._followed(child, output)
        with self._patience.waiting(child):
            return await self._followed(child, output)

    async def _followed(self, child: Child, output: Output) -> Outcome:
        reading = Reading()
        async with aclosing(self._host.client(OWNER).follow(child.session, 0)) as seen:
            async for one in seen:
                if not isinstance(one, Event):
                    continue
                reading.take(one)
                self._patience.take(one)
                if reading.ended is not None:
                    return reading.ended
                if isinstance(one.body, ToolStarted):
                    output(f"{child.number}: {one.body.name}\n")
        return Outcome(reason="error", text="It could not be followed to its end.")

    async def _report(self, child: Child) -> None:
        """Wait for an end, and put it into the parent's session as a message, once."""
        try:
            outcome = await self._work(child, _unheard)
            state = await self._state(child)
            if state == "stopped":
                return
            if state == "open" or not await self._told(child):
                await self._roster.keep(msgspec.structs.replace(child, state="reporting"))
                await self._host.call(
                    SessionDispatch(
                        session=child.parent,
                        parts=(Text(text=report([child], [outcome])), *outcome.artifacts),
                        agent=child.parent_agent,
                        address=child.address,
                        author=child.author,
                        trigger="agent",
                        labels=(f"{_FOR}{child.session}", *outcome.labels),
                    )
                )
            await self._roster.keep(msgspec.structs.replace(child, state="done"))
        except OperantError:
            return  # it is on record, and taken up again at the next start
        finally:
            self._reporting.discard(child.session)

    async def _told(self, child: Child) -> bool:
        """Tell whether a result has come in before: a process may have ended right after it did."""
        label = f"{_FOR}{child.session}"
        if any(label in item.labels for item in await self._host.kept.inbox(child.parent)):
            return True
        events = await self._host.kept.events(child.parent)
        return any(isinstance(one.body, MessageReceived) and label in one.body.labels for one in events)

    async def _origin(self, call: CallContext, mine: Child | None) -> Origin:
        origin = await origin_of(self._host.kept, call.session, call.turn)
        if mine is None:
            return origin
        return msgspec.structs.replace(
            origin, author=mine.author, labels=tuple(sorted({*mine.labels, *origin.labels})), address=None
        )

    async def _state(self, child: Child) -> str:
        """Return how a sub-agent stands; one that is forgotten is to do nothing any more."""
        now = await self._roster.get(child.session)
        return now.state if now else "stopped"

    def _pool(self, depth: int) -> asyncio.Semaphore:
        """Return the places of a generation: who waits for its children holds none of theirs."""
        return self._pools.setdefault(depth, asyncio.Semaphore(self._settings.pool))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        if self._group is None:
            work.close()
            return
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def is_open(host: Host, session: str) -> bool:
    """Tell whether a turn is open in a session."""
    try:
        return (await host.call(SessionGet(session=session))).state == "open"
    except OperantError:
        return False


def _unheard(text: str) -> None:
    """Take output that nobody looks at."""
