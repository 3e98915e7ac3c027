"""One session in memory: its history and all that is projected from it. Whoever holds it is its only writer here."""

from __future__ import annotations

import asyncio

import msgspec

from operant.kernel.context import Context, ContextState
from operant.kernel.log import History, Log, Stamp
from operant.kernel.ports import Snapshot
from operant.kernel.records import (
    ApprovalAnswered,
    Body,
    ContextOpened,
    Event,
    Record,
    SessionChanged,
    SessionInfo,
    SessionOpened,
)
from operant.kernel.standing import Standing

SNAPSHOT_EVENTS = 200
"""How many events may have to be read again when a session is opened."""

_VERSION = "1"


class _State(Record):
    info: SessionInfo
    context: ContextState
    allowed: tuple[str, ...]


class Conversation:
    """Keep a session's projections in step with its history."""

    def __init__(self, key: str, log: Log) -> None:
        self.key = key
        self.info = SessionInfo(key=key, agent="")
        self.context = Context()
        self.standing = Standing()
        self.history: History = log.history(key)
        self.stamp = Stamp()
        self._log = log
        self._snapshot_seq = 0
        self._answers: dict[str, asyncio.Future[ApprovalAnswered]] = {}

    async def load(self) -> None:
        """Read what the store has: the newest snapshot, then the events after it."""
        head = await self.history.open()
        if head is not None:
            self.info = head.info
            if head.snapshot is not None and head.snapshot.version == _VERSION:
                self._restore(head.snapshot)
            for event in await self._log.store.events(self.key, self._snapshot_seq):
                self._apply(event)
        self.history.observers.append(self._apply)

    def close(self) -> None:
        """Stop following the history."""
        if self._apply in self.history.observers:
            self.history.observers.remove(self._apply)

    @property
    def fresh(self) -> bool:
        """Tell whether what is in memory still stands for what is in the log."""
        return not self.history.stale

    def opened(self) -> ContextOpened | None:
        """Return the prompt and tools that requests use now."""
        return self.context.opened

    async def record(self, *bodies: Body) -> tuple[Event, ...]:
        """Record events of the running turn."""
        return await self.history.record(self.stamp, *bodies)

    async def flush(self) -> None:
        """Make what was recorded durable."""
        await self.history.flush()

    def stamp_as(self, agent: str, turn: str, user: str, trigger: str) -> None:
        """Let the next events be this agent's, in this turn, for this user; what nobody asked for is background."""
        background = trigger in {"job", "heartbeat", "agent"}
        self.stamp = Stamp(agent=agent, turn=turn, actor=f"agent:{agent}", user=user, background=background)

    def expect(self, approval_id: str) -> asyncio.Future[ApprovalAnswered]:
        """Be ready for an answer; to be called before anybody can see the question."""
        return self._answers.setdefault(approval_id, asyncio.get_running_loop().create_future())

    async def answer_to(self, approval_id: str) -> ApprovalAnswered:
        """Wait until somebody has answered a question."""
        future = self.expect(approval_id)
        try:
            return await asyncio.shield(future)
        finally:
            if future.done():
                self._answers.pop(approval_id, None)

    def snapshot(self) -> None:
        """Put a snapshot into the next flush when enough has happened since the last one; only between turns."""
        if self.history.seq - self._snapshot_seq < SNAPSHOT_EVENTS:
            return
        state = _State(
            info=self.info,
            context=self.context.state(),
            allowed=tuple(sorted(one for one in self.standing.allowed if ":" not in one)),
        )
        data = msgspec.msgpack.encode(state)
        self._snapshot_seq = self.history.seq
        self.history.also(Snapshot(session=self.key, seq=self.history.seq, version=_VERSION, data=data))

    def _restore(self, snapshot: Snapshot) -> None:
        try:
            state = msgspec.msgpack.decode(snapshot.data, type=_State)
        except msgspec.MsgspecError:
            return  # a snapshot only saves time: what it says is in the log as well
        self.info = state.info
        self.context = Context(state.context)
        self.standing.allowed = set(state.allowed)
        self._snapshot_seq = snapshot.seq

    def _apply(self, event: Event) -> None:
        self.context.apply(event)
        self.standing.apply(event)
        match event.body:
            case SessionOpened() as body:
                self.info = msgspec.structs.replace(
                    self.info,
                    agent=body.agent,
                    channel=body.channel,
                    chat=body.chat,
                    thread=body.thread,
                    title=body.title,
                    parent=body.parent,
                )
            case SessionChanged() as body:
                title = self.info.title if body.title is None else body.title
                model = self.info.model if body.model is None else body.model
                self.info = msgspec.structs.replace(self.info, title=title, model=model)
            case ApprovalAnswered() as body:
                future = self._answers.get(body.approval_id)
                if future is not None and not future.done():
                    future.set_result(body)
            case _:
                return
