"""Send a message: who may, how far it may go on, and then it is on record."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from operant.ext.a2a.courier import Courier
from operant.ext.a2a.letter import CHANNEL, Letter, Seals, about
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.past import Past
from operant.ext.a2a.settings import EVERYBODY, A2aSettings
from operant.ext.a2a.wording import asked, title
from operant.sdk import (
    A2aMessage,
    A2aSend,
    Address,
    Denied,
    Host,
    Invalid,
    NotFound,
    Part,
    Principal,
    Refused,
    SessionAppend,
    SessionDispatch,
    SessionGet,
    SessionHistory,
    SessionOpen,
    allowed,
    text_of,
)

NOTE = "a2a.message"
"""Kind of the note that a silent message is."""
AGENT = "agent"
"""Label of what an agent wrote."""
LONGEST = 100_000
MOST_MINUTES = 7 * 24 * 60


class Sender(NamedTuple):
    """Who sends: an agent in a session, or the owner or a client without one."""

    name: str
    past: Past | None = None

    @property
    def origin(self) -> str:
        return self.past.info.key if self.past else ""


class Ways(NamedTuple):
    """How letters get on: silent ones are left in a session, others go to another home."""

    left: Callable[[str, int], Awaitable[None]]
    courier: Courier


class Post:
    """Take messages in."""

    def __init__(self, host: Host, settings: A2aSettings, letters: Letters, seals: Seals, ways: Ways) -> None:
        self._host = host
        self.settings = settings
        self._letters = letters
        self._seals = seals
        self._left = ways.left
        self._courier = ways.courier

    async def send(self, who: Principal, call: A2aSend) -> A2aMessage:
        """Put a message on record, and start a turn where its kind says so."""
        text = call.text.strip()
        if not text or len(text) > LONGEST:
            raise Invalid(f"A message has from 1 to {LONGEST:,} characters, this one {len(text):,}.")
        if not 0 <= call.minutes <= MOST_MINUTES:
            raise Invalid("An answer can be waited for at most 7 days.", "Give fewer minutes, or 0 for the usual time.")
        sender = await self._sender(who, call)
        away = "@" in call.to
        letter = await self._limited(
            sender, self._abroad(sender, call) if away else await self._addressed(sender, call)
        )
        if away:
            return (await self._courier.carry(letter, text)).shown()
        parts = asked(letter, text)
        letter = self._seals.seal(letter, "ask", parts, letter.labels)
        await self._letters.put(letter, owed=letter.kind == "wake")
        await self.deliver(letter, parts)
        return letter.shown()

    async def deliver(self, letter: Letter, parts: tuple[Part, ...]) -> None:
        """Bring a sealed letter to its receiver."""
        if letter.kind == "silent":
            await self._leave(letter, parts)
            return
        await self._host.call(
            SessionDispatch(
                session=letter.session,
                parts=parts,
                address=letter.address,
                agent=letter.to,
                author=letter.author("ask"),
                external_id=letter.external_id("ask"),
                reply_to=letter.id,
                trigger="agent",
                labels=letter.labels,
            )
        )

    def may(self, sender: str, to: str) -> bool:
        """Tell whether an agent may write to another one."""
        return to != sender and any(fnmatchcase(to, rule) for rule in self._rules(sender))

    def abroad(self, sender: str, peer: str) -> tuple[str, ...]:
        """Return whom an agent may write to at a peer, as it is told: `AGENT@peer` where it may be anybody."""
        rules = self._rules(sender)
        named = tuple(rule for rule in rules if rule.endswith(f"@{peer}") and "*" not in rule)
        return (f"AGENT@{peer}",) if any(fnmatchcase(f"\0@{peer}", rule) for rule in rules) else named

    def _rules(self, sender: str) -> tuple[str, ...]:
        return self.settings.allow.get(sender, self.settings.allow.get(EVERYBODY, (EVERYBODY,)))

    # ------------------------------------------------------------------ inside

    async def _sender(self, who: Principal, call: A2aSend) -> Sender:
        """Say who sends, from who calls: nobody says it of themselves."""
        if not call.sender:
            return Sender("owner" if who.kind == "owner" else f"{who.kind}:{who.id}")
        if not allowed(who, "admin"):
            raise Denied(f"{who.kind} {who.id} may not send in the name of a session.", "It needs 'admin'.")
        past = await self._past(call.sender)
        return Sender(past.info.agent, past)

    async def _past(self, session: str) -> Past:
        info = await self._host.call(SessionGet(session=session))
        return Past(info, await self._host.call(SessionHistory(session=session)))

    async def _addressed(self, sender: Sender, call: A2aSend) -> Letter:
        """Make the letter: find its receiver and the session that it goes into."""
        to = self._host.agents.get(call.to).name
        session, address = call.session, Address(channel=CHANNEL, chat=call.session)
        if session:
            past = await self._past(session)
            if call.to and past.info.agent != to:
                raise Invalid(f"The session {session} is {past.info.agent}'s, not {to}'s.", "Leave one of them out.")
            to, address = past.info.agent, past.address
        else:
            session = _own_session(sender, to)
            address = Address(channel=CHANNEL, chat=session)
        return self._letter(sender, call, (to, session, address))

    def _abroad(self, sender: Sender, call: A2aSend) -> Letter:
        """Make the letter for an agent of another home."""
        if call.session:
            raise Invalid("A session of another home cannot be named.", "Leave out `session`.")
        self._courier.check(call.to)
        letter = self._letter(sender, call, (call.to, "", Address(channel=CHANNEL, chat=call.to)))
        return msgspec.structs.replace(letter, context=_digest(f"{sender.name}\0{sender.origin}\0{self._host.home}"))

    def _letter(self, sender: Sender, call: A2aSend, where: tuple[str, str, Address]) -> Letter:
        to, session, address = where
        now = self._host.clock.now()
        minutes = call.minutes or self.settings.minutes
        wake = call.kind == "wake"
        past = sender.past
        return Letter(
            id=self._host.ids.new(),
            kind=call.kind,
            sender=sender.name,
            to=to,
            session=session,
            address=address,
            sent=now,
            origin=sender.origin,
            back=past.address if past else None,
            turn=past.turn if past else "",
            labels=tuple(sorted({*past.labels, AGENT})) if past else (),
            about=about(call.text),
            deadline=now + int(minutes * 60_000_000) if wake else 0,
            state="open" if wake else "sent",
        )

    async def _limited(self, sender: Sender, letter: Letter) -> Letter:
        """Return the letter with what led to it. Raises `Refused` where it goes too far."""
        if sender.past is None:
            return letter
        limits = self.settings
        if letter.session == sender.origin or not self.may(sender.name, letter.to):
            raise Refused(
                f"{sender.name} may not send {letter.to} messages.", "The owner allows it: `a2a.allow` in operant.yaml."
            )
        before = [one for one in [await self._letters.get(id) for id in sender.past.causes()] if one is not None]
        chain = max((one.chain for one in before), key=len, default=())
        step = f"{sender.name}>{letter.to}"
        if len(chain) >= limits.hops:
            raise Refused(
                f"This would be message {len(chain) + 1} in a row among agents, and {limits.hops} are the limit.",
                "Finish with what there is, and tell the person.",
            )
        if chain.count(step) >= limits.rounds:
            raise Refused(
                f"{sender.name} and {letter.to} go round in circles: {limits.rounds} messages are the limit "
                "until a person has said something.",
                "Finish with what there is, and tell the person.",
            )
        waiting = [one for one in await self._letters.owed() if one.origin == sender.origin and one.state == "open"]
        if letter.kind == "wake" and len(waiting) >= limits.open:
            raise Refused(f"{len(waiting)} answers are waited for already, and no more may be.", "Wait for them first.")
        return msgspec.structs.replace(letter, chain=(*chain, step))

    async def _leave(self, letter: Letter, parts: tuple[Part, ...]) -> None:
        """Put a silent message on record."""
        try:
            await self._host.call(SessionGet(session=letter.session))
        except NotFound:
            await self._host.call(
                SessionOpen(session=letter.session, agent=letter.to, title=title(letter.sender), address=letter.address)
            )
        note = await self._host.call(
            SessionAppend(session=letter.session, kind=NOTE, text=text_of(parts), data={"id": letter.id})
        )
        await self._left(letter.session, note.seq)


def _own_session(sender: Sender, to: str) -> str:
    """Return the key of the session that a receiver has with a sender: one for each of its conversations."""
    key = f"a2a:{sender.name}:{to}"
    return f"{key}:{_digest(sender.origin)}" if sender.origin else key


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
