"""The syscalls about sessions."""

from __future__ import annotations

import re

import msgspec

from operant.kernel.conversation import Conversation
from operant.kernel.errors import Conflict, Invalid, NotFound, Unavailable
from operant.kernel.kernel import Kernel
from operant.kernel.log import Stamp
from operant.kernel.mailbox import LOCAL
from operant.kernel.ports import Erase
from operant.kernel.records import (
    Address,
    Agent,
    ApprovalAnswered,
    ApprovalAsked,
    BlobRef,
    Body,
    ContextOpened,
    Event,
    InboxItem,
    MessageDelivered,
    MessageFailed,
    MessageQueued,
    MessageReceived,
    Note,
    Principal,
    SessionChanged,
    SessionInfo,
    SessionOpened,
    ToolSpec,
)
from operant.kernel.syscalls import (
    Assembled,
    Dispatched,
    SessionAppend,
    SessionArchive,
    SessionAssemble,
    SessionCopy,
    SessionDispatch,
    SessionErase,
    SessionGet,
    SessionHistory,
    SessionList,
    SessionOpen,
    SessionStop,
    SessionUpdate,
    Stopped,
)

_KEY = re.compile(r"[\w.:@+#/=-]{1,200}")
_LEFT_OUT = (SessionOpened, MessageQueued, MessageDelivered, MessageFailed, ApprovalAsked, ApprovalAnswered)
"""What a copy does not have: it was sent elsewhere, or allowed elsewhere."""


class SessionCalls:
    """Carry out the calls about sessions."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def register(self) -> None:
        """Put the calls into the kernel's table."""
        add = self._kernel.syscalls.register
        add(SessionOpen, self.open)
        add(SessionGet, self.get)
        add(SessionList, self.list)
        add(SessionUpdate, self.update)
        add(SessionDispatch, self.dispatch)
        add(SessionAppend, self.append)
        add(SessionHistory, self.history)
        add(SessionAssemble, self.assemble)
        add(SessionStop, self.stop)
        add(SessionArchive, self.archive)
        add(SessionCopy, self.copy)
        add(SessionErase, self.erase)

    async def open(self, who: Principal, call: SessionOpen) -> SessionInfo:
        """Open a session, or return it when it is there."""
        key = _valid(call.session or self._kernel.ids.new())
        talk = await self._talk(key)
        if talk.history.seq == 0:
            where = call.address or Address(channel=LOCAL, chat=key)
            agent = self._kernel.agents.get(call.agent or self._kernel.agents.which(where, who.id).agent)
            await talk.history.append(
                Stamp(agent=agent.name, actor=_actor(who)),
                SessionOpened(
                    agent=agent.name,
                    channel=where.channel,
                    chat=where.chat,
                    thread=where.thread,
                    title=call.title,
                    parent=call.parent,
                ),
            )
        return await self._info(key)

    async def get(self, who: Principal, call: SessionGet) -> SessionInfo:
        """Return one session."""
        return await self._info(call.session)

    async def list(self, who: Principal, call: SessionList) -> tuple[SessionInfo, ...]:
        """List sessions."""
        return tuple(
            await self._kernel.store.sessions(
                limit=call.limit, before=call.before, archived=call.archived, agent=call.agent
            )
        )

    async def update(self, who: Principal, call: SessionUpdate) -> SessionInfo:
        """Give a session another title or model."""
        if call.model:
            self._kernel.compute.find(call.model)
        await self._change(who, call.session, SessionChanged(title=call.title, model=call.model))
        return await self._info(call.session)

    async def archive(self, who: Principal, call: SessionArchive) -> SessionInfo:
        """Take a session out of the lists, or bring it back."""
        await self._change(who, call.session, SessionChanged(archived=call.archived))
        return await self._info(call.session)

    async def dispatch(self, who: Principal, call: SessionDispatch) -> Dispatched:
        """Accept a message; it is durable when this returns."""
        kernel = self._kernel
        if not kernel.accepting:
            raise Unavailable("Operant is stopping and accepts nothing.", "Send it again when it is back.")
        if not call.parts:
            raise Invalid("The message is empty.", "Give it at least one part.")
        key, agent = await self._placed(call, call.author or who.id)
        item = InboxItem(
            id=kernel.ids.new(),
            session=key,
            parts=call.parts,
            address=call.address or Address(channel=LOCAL, chat=key),
            accepted=kernel.clock.now(),
            author=call.author or who.id,
            external_id=call.external_id,
            reply_to=call.reply_to,
            trigger=call.trigger,
            mode=call.mode,
            labels=call.labels,
            agent=agent.name,
        )
        accepted, repeat = await kernel.inbox.accept(item)
        if not repeat:
            session = kernel.sessions.get(key)
            if session.turn is not None and agent.arrival == "interrupt":
                session.stop()
            session.wake()
        kernel.faults("acknowledging")
        return Dispatched(inbox_id=accepted.id, session=accepted.session, repeat=repeat)

    async def _placed(self, call: SessionDispatch, user: str) -> tuple[str, Agent]:
        """Return the session that a message belongs to, and the agent that answers it there."""
        agents, key = self._kernel.agents, _valid(call.session)
        if call.agent:
            return key, agents.get(call.agent)
        where = call.address or Address(channel=LOCAL, chat=key)
        chosen = agents.which(where, user)
        own = (await self._talk(key)).info.agent
        if own in ("", chosen.agent):
            return key, agents.get(chosen.agent)
        if not chosen.bound or self._kernel.outbox.pulls(where):
            return key, agents.get(chosen.agent)
        return _valid(f"{key}@{chosen.agent}"), agents.get(chosen.agent)

    async def append(self, who: Principal, call: SessionAppend) -> Event:
        """Put a note on record."""
        talk = await self._known(call.session)
        stamp = Stamp(agent=talk.info.agent, actor=_actor(who))
        events = await talk.history.append(stamp, Note(kind=call.kind, text=call.text, data=call.data))
        return events[0]

    async def history(self, who: Principal, call: SessionHistory) -> tuple[Event, ...]:
        """Return a session's events."""
        if await self._kernel.store.head(call.session) is None:
            raise _unknown(call.session)
        return tuple(await self._kernel.store.events(call.session, call.after, call.limit))

    async def assemble(self, who: Principal, call: SessionAssemble) -> Assembled:
        """Return what the model would be sent now."""
        talk = await self._known(call.session)
        opened = talk.context.opened or ContextOpened(
            system=BlobRef(digest="", size=0), tools=BlobRef(digest="", size=0)
        )
        system = await self._blob(opened.system.digest)
        tools = await self._blob(opened.tools.digest) or b"[]"
        return Assembled(
            system=system.decode(),
            messages=talk.context.messages,
            tools=msgspec.json.decode(tools, type=tuple[ToolSpec, ...]),
            tokens=talk.context.tokens,
        )

    async def stop(self, who: Principal, call: SessionStop) -> Stopped:
        """Stop the running turn."""
        return Stopped(stopped=self._kernel.sessions.get(call.session).stop(call.turn))

    async def copy(self, who: Principal, call: SessionCopy) -> SessionInfo:
        """Write a history anew under another key."""
        key = _valid(call.session or self._kernel.ids.new())
        talk = await self._talk(key)
        if talk.history.seq:
            raise Conflict(f"There is already a session {key}.", "Name another key.")
        source, home = call.source, Address(channel=LOCAL, chat=key)
        opened = SessionOpened(
            agent=source.agent, channel=LOCAL, chat=key, title=call.title or source.title, parent=source.key
        )
        bodies: list[Body] = [opened]
        for event in call.events:
            if isinstance(event.body, MessageReceived):
                bodies.append(msgspec.structs.replace(event.body, address=home))
            elif isinstance(event.body, Body) and not isinstance(event.body, _LEFT_OUT):
                bodies.append(event.body)
        await talk.history.append(Stamp(agent=source.agent, actor=_actor(who), copied=True), *bodies)
        return await self._info(key)

    async def erase(self, who: Principal, call: SessionErase) -> Stopped:
        """Remove every trace of a session."""
        await self._known(call.session)
        session = self._kernel.sessions.get(call.session)
        stopped = session.stop()
        while session.working:
            await self._kernel.clock.sleep(0.01)
        talk = await session.conversation()
        self._kernel.log.forget(talk.history)
        await self._kernel.store.write(Erase(session=call.session))
        self._kernel.sessions.drop(call.session)
        return Stopped(stopped=stopped)

    # ------------------------------------------------------------------ inside

    async def _talk(self, key: str) -> Conversation:
        return await self._kernel.sessions.get(key).conversation()

    async def _known(self, key: str) -> Conversation:
        talk = await self._talk(key)
        if talk.history.seq == 0:
            raise _unknown(key)
        return talk

    async def _info(self, key: str) -> SessionInfo:
        head = await self._kernel.store.head(key)
        if head is None:
            raise _unknown(key)
        return head.info

    async def _change(self, who: Principal, key: str, body: SessionChanged) -> None:
        talk = await self._known(key)
        await talk.history.append(Stamp(agent=talk.info.agent, actor=_actor(who)), body)

    async def _blob(self, digest: str) -> bytes:
        return await self._kernel.store.get_blob(digest) if digest else b""


def _actor(who: Principal) -> str:
    return f"{who.kind}:{who.id}"


def _valid(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise Invalid(
            f"{key[:40]!r} cannot be the key of a session.", "Use letters, digits and . : @ + # / = _ - (at most 200)."
        )
    return key


def _unknown(key: str) -> NotFound:
    return NotFound(f"There is no session {key!r}.", "`operant session list` shows those there are.")
