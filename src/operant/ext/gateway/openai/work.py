"""From a request to a session and a turn: which conversation it goes on with, and when there is something to say."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator

import msgspec

from operant.ext.gateway.exchange import Gatherer, Order, Outcome, watched
from operant.ext.gateway.hub import Hub, Reset, Seen
from operant.ext.gateway.openai.asked import Asked, Said, wrong
from operant.ext.gateway.openai.functions import PREFIX, Functions
from operant.ext.gateway.problem import Rejected
from operant.sdk import (
    AgentGet,
    BlobRef,
    Body,
    Client,
    Delta,
    Denied,
    Event,
    Host,
    MessageReceived,
    ModelReplied,
    Part,
    Principal,
    PutValue,
    SessionCopy,
    SessionDispatch,
    SessionInfo,
    Text,
    ToolCall,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    allowed,
    text_of,
)

NAMESPACE = "gateway.openai"
KEPT_S = 30 * 86_400


class Progress:
    """What a turn has come to so far, as a client of these protocols sees it: text, and calls that it must answer."""

    def __init__(self, session: str, functions: Functions) -> None:
        self.session = session
        self.text = ""
        self.calls: tuple[ToolCall, ...] = ()
        self._functions = functions
        self._gatherer = Gatherer()
        self._step = ""
        self._silent = False
        self._asked: dict[str, ToolCall] = {}
        self._mixed = False

    @property
    def outcome(self) -> Outcome:
        """Return how the turn ended, as far as it has."""
        return self._gatherer.outcome

    def take(self, seen: Seen) -> str:
        """Take one more thing into account and return the text that it adds."""
        if isinstance(seen, Delta):
            return self._delta(seen)
        if isinstance(seen, Reset):
            return ""
        self._gatherer.take(seen)
        body = seen.body
        if isinstance(body, ModelReplied) and body.purpose == "turn":
            return self._replied(body)
        if isinstance(body, ToolStarted | ToolEnded):
            self._moved(body)
        return self._closing(body) if isinstance(body, TurnEnded) else ""

    def _delta(self, delta: Delta) -> str:
        if delta.kind == "restart":
            self._silent = bool(self._step)
            return ""
        if delta.kind != "text" or self._silent:
            return ""
        start = "\n\n" if self.text and not self._step else ""
        self._step += delta.text
        self.text += start + delta.text
        return start + delta.text

    def _replied(self, body: ModelReplied) -> str:
        """Add what was not streamed; after a model was asked again, that may be all of it."""
        whole, streamed = text_of(body.parts), self._step
        self._step, self._silent = "", False
        calls = {part.id: part for part in body.parts if isinstance(part, ToolCall)}
        self._asked = {id: call for id, call in calls.items() if self._functions.own(self.session, call.name)}
        self._mixed = len(self._asked) < len(calls)
        if whole.startswith(streamed):
            rest = whole[len(streamed) :]
            rest = ("\n\n" if rest and self.text and not streamed else "") + rest
        else:
            rest = "\n\n" + whole
        self.text += rest
        return rest

    def _moved(self, body: ToolStarted | ToolEnded) -> None:
        """Note that a call waits for its client; of several that run side by side, that all of them do."""
        if isinstance(body, ToolEnded):
            self._asked.pop(body.call_id, None)
            waiting = [call for call in self.calls if call.id != body.call_id]
            self.calls = tuple(waiting)
            return
        call = self._asked.get(body.call_id)
        if call is not None:
            self.calls = (*self.calls, call)

    def _closing(self, body: TurnEnded) -> str:
        """Add what the person was told when the turn did not end well."""
        if self.text or body.reason == "error" or not body.sentence:
            return ""
        self.text = body.sentence
        return body.sentence

    @property
    def waiting(self) -> bool:
        """Tell whether it is the client's turn now."""
        return bool(self.calls) and (self._mixed or len(self.calls) >= len(self._asked))


def need_talk(who: Principal) -> None:
    """Raise `Denied` for who may not talk; asked first of all, because reading a request may fetch pictures."""
    if not allowed(who, SessionDispatch.capability):
        raise Denied("This token may not talk.", f"It needs {SessionDispatch.capability!r}.")


Begun = tuple[Progress, AsyncGenerator[Seen, None]]
"""What is known of an answer so far, and what there is to watch."""


def shown_name(call: ToolCall) -> str:
    """Return a call's name as the client gave it."""
    return call.name.removeprefix(PREFIX)


class Work:
    """Carry out requests."""

    def __init__(self, host: Host, hub: Hub, functions: Functions) -> None:
        self._host = host
        self._hub = hub
        self._functions = functions

    async def begin(self, client: Client, asked: Asked, key: str, who: Principal) -> Begun:
        """Find or make the session, and return what to watch. Raises `Rejected`, `NotFound`, `Denied`."""
        need_talk(who)
        agent = await client.call(AgentGet(agent=asked.agent))
        results = [one for one in asked.fresh if one.role == "tool"]
        if results:
            return await self._go_on(results)
        parts = tuple(part for one in asked.fresh for part in one.parts)
        if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
            raise wrong("There is no message to answer.", "End with a message of the user.")
        session, is_new = await self._session(client, asked, agent.name)
        if is_new and asked.instructions:
            parts = (Text(text=f"Instructions of the program that asks:\n{asked.instructions}\n\n"), *parts)
        await self._functions.offer(session, asked.tools)
        order = Order(session=session, parts=parts, agent=agent.name, key=key, account=who.id)
        return Progress(session, self._functions), watched(self._hub, client, order)

    async def remember(self, asked: Asked, progress: Progress) -> None:
        """Remember which session a conversation belongs to that goes on after this answer."""
        answer = Said(role="assistant", parts=(Text(text=progress.text), *progress.calls))
        place = _digest(asked.agent, (*asked.said, answer))
        await self.keep(place, progress.session.encode())

    async def keep(self, key: str, value: bytes) -> None:
        """Keep a value for a month."""
        until = self._host.clock.now() + KEPT_S * 1_000_000
        await self._host.kept.write(PutValue(namespace=NAMESPACE, key=key, value=value, expires=until))

    async def kept(self, key: str) -> bytes | None:
        """Return a value that was kept."""
        return await self._host.kept.value(NAMESPACE, key)

    # ------------------------------------------------------------------ which session

    async def _session(self, client: Client, asked: Asked, agent: str) -> tuple[str, bool]:
        """Return the session of a conversation, and whether it begins here."""
        if asked.session:
            return asked.session, False
        if asked.before:
            known = await self.kept(_digest(asked.agent, asked.before))
            if known is not None:
                return known.decode(), False
        session = f"openai/{self._host.ids.new()}"
        if asked.before:
            events = tuple(_event(session, seq, body) for seq, body in enumerate(_history(asked.before), 1))
            source = SessionInfo(key=session, agent=agent)
            await client.call(SessionCopy(source=source, events=events, session=session))
        return session, True

    async def _go_on(self, results: list[Said]) -> Begun:
        """Hand the client's results to the calls that wait for them."""
        places = [self._functions.where(one.call_id) for one in results]
        found = next((place for place in places if place is not None), None)
        if found is None:
            raise Rejected(
                409, "No call waits for these results.", "The turn has ended; say something new.", code="conflict"
            )
        session, turn = found
        progress = Progress(session, self._functions)
        return progress, self._rest(progress, turn, results)

    async def _rest(self, progress: Progress, turn: str, results: list[Said]) -> AsyncGenerator[Seen, None]:
        with self._hub.viewer(progress.session) as viewer:
            for one in results:
                self._functions.answer(progress.session, one.call_id, text_of(one.parts))
            async for seen in viewer.seen():
                if isinstance(seen, Reset):
                    raise Rejected(409, "The session was deleted while it worked.", code="conflict")
                if seen.turn != turn:
                    continue
                yield seen
                if isinstance(seen, Event) and isinstance(seen.body, TurnEnded):
                    return


def _history(said: tuple[Said, ...]) -> list[Body]:
    """Put a conversation that went on elsewhere into the words of a history."""
    bodies: list[Body] = []
    for one in said:
        if one.role == "assistant":
            bodies.append(ModelReplied(parts=one.parts, model="client/elsewhere", provider="client"))
        elif one.role == "tool":
            bodies.append(ToolEnded(call_id=one.call_id, outcome="ok", parts=one.parts, labels=("client",)))
        else:
            bodies.append(MessageReceived(parts=one.parts, author="client"))
    return bodies


def _event(session: str, seq: int, body: Body) -> Event:
    return Event(session=session, seq=seq, id=f"{session}-{seq}", type=body.type, at=0, body=body)


def _digest(agent: str, said: tuple[Said, ...]) -> str:
    parts = [(one.role, one.call_id, _flat(one.parts)) for one in said]
    return hashlib.sha256(msgspec.json.encode((agent, parts))).hexdigest()


def _flat(parts: tuple[Part, ...]) -> list[str]:
    """Say parts so that they are the same whichever way they came: clients split and join words."""
    calls = [f"call:{part.id}" for part in parts if isinstance(part, ToolCall)]
    files = [part.digest for part in parts if isinstance(part, BlobRef)]
    return [text_of(parts).strip(), *calls, *files]
