"""Bring answers back, and say when none came in time; the log is asked at each end of a turn and each deadline."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from operant.ext.a2a.letter import Letter, Piece, Seals, State
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.outcome import Outcome, Outcomes
from operant.ext.a2a.post import AGENT
from operant.ext.a2a.wording import answered, overdue
from operant.sdk import Host, NotFound, OperantError, Part, SessionDispatch, SessionGet

STRAGGLERS_US = 24 * 3_600_000_000
"""For how long after its deadline an answer is still passed on."""
LOOK_S = 3600.0
"""Look again after so long at most: the machine's clock may have been set."""
RETRY_S = 30.0

_log = logging.getLogger("operant.a2a")


class Desk:
    """Watch over the letters that are owed an answer."""

    def __init__(self, host: Host, letters: Letters, seals: Seals) -> None:
        self._host = host
        self._letters = letters
        self._seals = seals
        self._outcomes = Outcomes(host, letters)
        self._news = asyncio.Event()

    def sent(self) -> None:
        """Look at the letters: there is a new deadline, an answer has come, or a turn is over."""
        self._news.set()

    async def watch(self) -> None:
        """Work until cancelled."""
        while True:
            self._news.clear()
            wait = await self._look()
            async with asyncio.TaskGroup() as group:
                alarm = group.create_task(self._ring(wait))
                await self._news.wait()
                alarm.cancel()

    async def _ring(self, seconds: float) -> None:
        await self._host.clock.sleep(seconds)
        self._news.set()

    async def _look(self) -> float:
        """Deal with what can be dealt with; return the seconds until the next deadline."""
        wait = LOOK_S
        try:
            for letter in await self._letters.owed():
                wait = min(wait, await self._deal(letter))
        except OperantError as error:
            _log.warning("answers wait: %s", error.line())
            return RETRY_S
        return wait

    async def _deal(self, letter: Letter) -> float:
        """Pass an answer on, or the news that there is none; return the seconds until it must be looked at again."""
        outcome = await self._outcomes.of(letter)
        if outcome is not None:
            await self._answer(letter, outcome)
            return LOOK_S
        now = self._host.clock.now()
        if letter.state == "open" and now >= letter.deadline:
            letter = await self._tell(letter, "late", overdue(letter), (), "late")
            await self._letters.put(letter, owed=True)
        if letter.state == "open":
            return (letter.deadline - now) / 1_000_000
        if now < letter.deadline + STRAGGLERS_US:
            return LOOK_S
        await self._letters.put(letter, owed=False)
        return LOOK_S

    async def _answer(self, letter: Letter, outcome: Outcome) -> None:
        labels = tuple(sorted({*outcome.labels, AGENT}))
        parts = answered(letter, outcome.text, labels, late=letter.state == "late")
        letter = await self._tell(letter, "answer", parts, labels, "answered")
        await self._letters.put(letter, owed=False)

    async def _tell(
        self, letter: Letter, piece: Piece, parts: tuple[Part, ...], labels: tuple[str, ...], state: State
    ) -> Letter:
        """Hand the sender's session a piece, if it has one that is still there; return the letter as it stands then."""
        after = msgspec.structs.replace(letter, state=state)
        if not letter.origin or letter.back is None or not await self._there(letter.origin):
            return after
        after = self._seals.seal(after, piece, parts, labels)
        sealed = msgspec.structs.replace(after, state=letter.state)
        await self._letters.put(sealed, owed=True)
        await self._host.call(
            SessionDispatch(
                session=letter.origin,
                parts=parts,
                address=letter.back,
                agent=letter.sender,
                author=letter.author(piece),
                external_id=letter.external_id(piece),
                reply_to=letter.id,
                trigger="agent",
                labels=labels,
            )
        )
        return after

    async def _there(self, session: str) -> bool:
        try:
            await self._host.call(SessionGet(session=session))
        except NotFound:
            return False
        return True
