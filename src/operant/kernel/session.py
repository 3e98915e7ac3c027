"""A session at work: its messages one after the other, at most one turn at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

from operant.kernel.conversation import Conversation
from operant.kernel.crew import Crew
from operant.kernel.errors import NotFound, OperantError
from operant.kernel.house import House
from operant.kernel.ports import Agents
from operant.kernel.records import Agent, InboxItem
from operant.kernel.turn import Turn

_log = logging.getLogger("operant.session")

KEPT = 512
"""Idle sessions that stay in memory; others are read again when they are needed."""


class Session:
    """One session in this process."""

    def __init__(self, key: str, sessions: Sessions) -> None:
        self.key = key
        self.turn: Turn | None = None
        self.working = False
        self._sessions = sessions
        self._talk: Conversation | None = None
        self._loading = asyncio.Lock()

    async def conversation(self) -> Conversation:
        """Return the session as the log has it."""
        async with self._loading:
            talk = self._talk
            if talk is None or not talk.fresh:
                if talk is not None:
                    talk.close()
                talk = Conversation(self.key, self._sessions.house.log)
                await talk.load()
                self._talk = talk
            return talk

    @property
    def asking(self) -> bool:
        """Tell whether the turn waits for a person; the question survives a restart, so nobody need wait for it."""
        return self._talk is not None and bool(self._talk.standing.questions)

    def stop(self, turn: str = "") -> bool:
        """Stop the running turn, or only the one named; tell whether there was one."""
        if self.turn is None or (turn and self.turn.id != turn):
            return False
        self.turn.stop()
        return True

    def wake(self) -> None:
        """Look for work; does nothing where a task of this session is at it already."""
        if not self.working:
            self.working = True
            self._sessions.crew.spawn(self._work())

    async def _work(self) -> None:
        inbox = self._sessions.house.inbox
        failed = False
        try:
            async with self._sessions.slots:
                while await self._next():
                    self._sessions.keep(self)
        except OperantError as error:
            failed = True
            self._talk = None
            _log.warning("session %s waits: %s", self.key, error.sentence)
        finally:
            self.working = False
            self._sessions.keep(self)
        if not failed and inbox.waits(self.key):
            self.wake()

    async def _next(self) -> bool:
        """Handle the open turn, or the next message; False when there is neither."""
        talk = await self.conversation()
        item = None if talk.standing.open else self._sessions.house.inbox.take(self.key)
        if item is None and not talk.standing.open:
            return False
        agent, problem = self._agent(talk, item)
        self.turn = Turn(self._sessions.house, talk, agent)
        try:
            await self.turn.run(item, problem)
        finally:
            self.turn = None
        return True

    def _agent(self, talk: Conversation, item: InboxItem | None) -> tuple[Agent, str]:
        name = talk.info.agent or (item.agent if item else "")
        try:
            return self._sessions.agents.get(name), ""
        except NotFound as error:
            return Agent(name=name), error.line()


class Sessions:
    """All sessions in this process: those at work, and the idle ones last used."""

    def __init__(self, house: House, agents: Agents, max_turns: int) -> None:
        self.house = house
        self.agents = agents
        self.slots = asyncio.Semaphore(max_turns)
        self.crew = Crew()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def get(self, key: str) -> Session:
        """Return a session, whether or not the store has it."""
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = Session(key, self)
        return session

    def keep(self, session: Session) -> None:
        """Note that a session was used just now, and let the longest unused ones go."""
        self._sessions[session.key] = session
        self._sessions.move_to_end(session.key)
        if len(self._sessions) > KEPT:
            for key, other in list(self._sessions.items())[: len(self._sessions) - KEPT]:
                if not other.working:
                    del self._sessions[key]

    def drop(self, key: str) -> None:
        """Let a session go whose history was erased."""
        self._sessions.pop(key, None)

    @property
    def working(self) -> tuple[Session, ...]:
        """Return the sessions that are at work."""
        return tuple(session for session in self._sessions.values() if session.working)

    @property
    def busy(self) -> bool:
        """Tell whether any session is at something that would be lost time to end now."""
        return any(not session.asking for session in self.working)
