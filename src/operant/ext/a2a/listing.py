"""List messages between agents."""

from __future__ import annotations

import asyncio

import msgspec

from operant.ext.a2a.letter import Letter
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.outcome import Outcomes
from operant.sdk import A2aList, A2aMessage, Host, NotFound, Principal

LONGEST_S = 60.0


class Listing:
    """Carry out `a2a.list`."""

    def __init__(self, host: Host, letters: Letters) -> None:
        self._letters = letters
        self._outcomes = Outcomes(host, letters)
        self._news = asyncio.Event()

    def ring(self) -> None:
        """Have those who wait look again: there may be an answer."""
        self._news.set()
        self._news = asyncio.Event()

    async def list(self, who: Principal, call: A2aList) -> tuple[A2aMessage, ...]:
        """List messages, the last sent first; one that is asked for by its id comes with its answer."""
        if call.id:
            return (await self._awaited(call.id, min(call.wait_s, LONGEST_S)),)
        letters = [
            one for one in await self._letters.all() if not call.session or call.session in (one.session, one.origin)
        ]
        found = [await self._shown(one) for one in letters]
        found = [one for one in found if one.state == "open" or not call.open]
        return tuple(reversed(found[-call.limit :] if call.limit else found))

    async def _awaited(self, id: str, seconds: float) -> A2aMessage:
        """Return one message: when its answer is there, or as it stands when the time is over."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                return await self._over(id)
        except TimeoutError:
            return await self._one(id)

    async def _over(self, id: str) -> A2aMessage:
        while True:
            news = self._news  # taken before the look, so that nothing falls between the two
            one = await self._one(id)
            if one.state not in ("open", "late"):
                return one
            await news.wait()

    async def _one(self, id: str) -> A2aMessage:
        letter = await self._letters.get(id)
        if letter is None:
            raise NotFound(f"There is no message {id!r} between agents.", "`operant a2a list` shows those there are.")
        outcome = await self._outcomes.of(letter) if letter.kind == "wake" else None
        if outcome is None:
            return letter.shown()
        return msgspec.structs.replace(letter.shown(outcome.text), state="answered")

    async def _shown(self, letter: Letter) -> A2aMessage:
        """Show a letter as it stands: one whose answer is there, and not yet passed on, is answered."""
        shown = letter.shown()
        if letter.state == "open" and await self._outcomes.of(letter) is not None:
            return msgspec.structs.replace(shown, state="answered")
        return shown
