"""What an agent wants to go on with after a restart: on record before anything ends, told once afterwards."""

from __future__ import annotations

import msgspec

from operant.sdk import Address, CallContext, Host, MessageReceived, PutValue, Record, ToolEnded

_NAMESPACE = "renewal"
_PAGE = 1_000
_OWN = ("malformed", "agent:", "restart:")
"""Labels that mark one event and say nothing about where words come from."""


class Wish(Record):
    """A restart that was asked for in a session; `process` is the one that is to end."""

    key: str
    session: str
    turn: str
    agent: str
    text: str
    process: str
    author: str = ""
    address: Address | None = None
    labels: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return what tells its message from all others."""
        return f"restart:{self.key}"


class Wishes:
    """Keep wishes in the store."""

    def __init__(self, host: Host, process: str) -> None:
        self._host = host
        self._process = process

    async def make(self, call: CallContext, text: str) -> Wish:
        """Return what a call wishes; it carries the labels of all that its model may have read."""
        author, address, labels, after = "", None, set[str](), 0
        while events := await self._host.kept.events(call.session, after, _PAGE):
            after = events[-1].seq
            for event in events:
                body = event.body
                if isinstance(body, MessageReceived | ToolEnded):
                    labels |= {label for label in body.labels if not label.startswith(_OWN)}
                if isinstance(body, MessageReceived) and event.turn == call.turn:
                    author, address = body.author or author, body.address or address
        return Wish(
            key=call.key,
            session=call.session,
            turn=call.turn,
            agent=call.agent.name,
            text=text,
            process=self._process,
            author=author,
            address=address,
            labels=tuple(sorted(labels)),
        )

    async def keep(self, wish: Wish) -> None:
        """Write it down."""
        value = msgspec.json.encode(wish)
        await self._host.kept.write(PutValue(namespace=_NAMESPACE, key=wish.key, value=value))

    async def drop(self, wish: Wish) -> None:
        """Forget it."""
        await self._host.kept.write(PutValue(namespace=_NAMESPACE, key=wish.key, value=None))

    async def all(self) -> list[Wish]:
        """Return all of them, the oldest first."""
        return [msgspec.json.decode(value, type=Wish) for _, value in await self._host.kept.values(_NAMESPACE)]

    async def fulfilled(self, wish: Wish) -> bool:
        """Tell whether another process has begun since it was made."""
        known = [one for one in await self.all() if one.key == wish.key]
        return any(one.process != self._process for one in known) or await self.told(wish)

    async def told(self, wish: Wish) -> bool:
        """Tell whether its message has come in: a process may have ended right after it did."""
        if any(wish.label in item.labels for item in await self._host.kept.inbox(wish.session)):
            return True
        events = await self._host.kept.events(wish.session)
        return any(isinstance(one.body, MessageReceived) and wish.label in one.body.labels for one in events)
