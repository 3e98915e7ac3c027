"""List messages between agents."""

from __future__ import annotations

import msgspec

from operant.ext.a2a.letter import Letter
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.outcome import Outcomes
from operant.sdk import A2aList, A2aMessage, Host, NotFound, Principal


class Listing:
    """Carry out `a2a.list`."""

    def __init__(self, host: Host, letters: Letters) -> None:
        self._letters = letters
        self._outcomes = Outcomes(host, letters)

    async def list(self, who: Principal, call: A2aList) -> tuple[A2aMessage, ...]:
        """List messages, the last sent first; one that is asked for by its id comes with its answer."""
        if call.id:
            return (await self._one(call.id),)
        found = [one for one in await self._letters.all() if _fits(one, call)]
        return tuple(one.shown() for one in reversed(found[-call.limit :] if call.limit else found))

    async def _one(self, id: str) -> A2aMessage:
        letter = await self._letters.get(id)
        if letter is None:
            raise NotFound(f"There is no message {id!r} between agents.", "`operant a2a list` shows those there are.")
        outcome = await self._outcomes.of(letter) if letter.kind == "wake" else None
        if outcome is None:
            return letter.shown()
        return msgspec.structs.replace(letter.shown(outcome.text), state="answered")


def _fits(letter: Letter, call: A2aList) -> bool:
    if call.open and letter.state != "open":
        return False
    return not call.session or call.session in (letter.session, letter.origin)
