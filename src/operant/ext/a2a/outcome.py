"""What became of a letter: derived from the receiver's history, so that it is the same after a restart."""

from __future__ import annotations

from collections.abc import Sequence

from operant.ext.a2a.letter import Letter
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.past import Past
from operant.ext.a2a.wording import OUTSIDE
from operant.sdk import Event, Host, MessageQueued, MessageReceived, NotFound, Record, SessionGet, TurnEnded, text_of


class Outcome(Record):
    """An answer, and where its words are from."""

    text: str
    labels: tuple[str, ...] = ()


class Outcomes:
    """Read histories for answers."""

    def __init__(self, host: Host, letters: Letters) -> None:
        self._host = host
        self._letters = letters

    async def of(self, letter: Letter) -> Outcome | None:
        """Return the answer, or None while there is none."""
        if letter.away:
            return None if letter.result is None else Outcome(text=letter.result, labels=(OUTSIDE,))
        kept, where = self._host.kept, letter.address
        item = await kept.accepted(where.channel, where.account, letter.external_id("ask"))
        if item is None or item.state == "waiting":
            return None
        if item.state == "rejected":
            return Outcome(text=f"(It was refused: {item.reason})")
        events = await kept.events(letter.session, item.seq - 1)
        last = await self._last_turn(letter, events)
        if last is None:
            return None
        said = [
            text_of(event.body.parts)
            for event in events
            if event.turn == last.turn and isinstance(event.body, MessageQueued)
        ]
        return Outcome(text="\n\n".join(said), labels=await self._labels(letter.session))

    async def _last_turn(self, letter: Letter, events: Sequence[Event]) -> Event | None:
        """Return the end of the turn that answers: the last of those that the letter led to, once all have ended."""
        turns = await self.turns(letter, events)
        ends = {event.turn: event for event in events if isinstance(event.body, TurnEnded)}
        if turns is None or any(turn not in ends for turn in turns):
            return None
        return max((ends[turn] for turn in turns), key=lambda event: event.seq)

    async def turns(self, letter: Letter, events: Sequence[Event]) -> tuple[str, ...] | None:
        """Return the turns that a letter led to; None where more are to come.

        A receiver who asks others in its turn is done when it has dealt with what they answered. `events` begin with
        the letter's own.
        """
        if not events:
            return None
        heard = {event.body.external_id: event.turn for event in events if isinstance(event.body, MessageReceived)}
        turns = [events[0].turn]
        for one in await self._letters.all():
            if one.task == letter.id:
                pieces = [one.external_id("ask")]
            elif one.kind == "wake" and one.origin == letter.session and one.turn in turns:
                pieces = [one.external_id("answer"), one.external_id("late")]
            else:
                continue
            more = [heard[piece] for piece in pieces if piece in heard]
            if not more:
                return None
            turns += more
        return tuple(dict.fromkeys(turns))

    async def _labels(self, session: str) -> tuple[str, ...]:
        try:
            info = await self._host.call(SessionGet(session=session))
        except NotFound:
            return ()
        return Past(info, await self._host.kept.events(session)).labels
