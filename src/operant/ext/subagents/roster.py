"""Who works for whom: one record a sub-agent, in the store before the sub-agent is told anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Literal

import msgspec

from operant.sdk import Address, Host, PutValue, Record

_NAMESPACE = "subagents"


class Child(Record):
    """A sub-agent: its task and for whom it works, from the call up to the turn of a person that all this is for.

    `open`: not known to have ended. `reporting`: it has ended, and its result is on the way into its parent's session.
    `stopped`: it may do nothing any more.
    """

    session: str
    number: int
    agent: str
    task: str
    parent: str
    turn: str
    parent_agent: str
    root: str
    root_turn: str
    wait: bool = True
    state: Literal["open", "reporting", "done", "stopped"] = "open"
    author: str = ""
    labels: tuple[str, ...] = ()
    address: Address | None = None
    """Where the parent's person is; a result that nobody waits for is answered there."""

    @property
    def depth(self) -> int:
        """Return the generation, from 1."""
        return self.agent.count("/")


class Roster:
    """Keep the records; memory mirrors the store, which has them first."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[str, Child] | None = None
        self._loading = asyncio.Lock()

    async def all(self) -> dict[str, Child]:
        """Return all sub-agents by session."""
        if self._known is None:
            async with self._loading:
                if self._known is None:
                    found = await self._host.kept.values(_NAMESPACE)
                    self._known = {key: msgspec.json.decode(value, type=Child) for key, value in found}
        return self._known

    async def get(self, session: str) -> Child | None:
        """Return the sub-agent of a session, if it is one's."""
        return (await self.all()).get(session)

    async def of_turn(self, root: str, turn: str) -> list[Child]:
        """Return all that work for one turn of a person, in any generation."""
        return [one for one in (await self.all()).values() if one.root == root and one.root_turn == turn]

    async def of_parent(self, session: str) -> list[Child]:
        """Return those that a session called itself."""
        return [one for one in (await self.all()).values() if one.parent == session]

    async def keep(self, *children: Child) -> None:
        """Write records, all or none."""
        known = await self.all()
        await self._host.kept.write(
            *(PutValue(namespace=_NAMESPACE, key=one.session, value=msgspec.json.encode(one)) for one in children)
        )
        known.update((one.session, one) for one in children)

    async def drop(self, children: Iterable[Child]) -> None:
        """Forget those whose work is over; their sessions stay."""
        known = await self.all()
        gone = [one.session for one in children]
        if gone:
            await self._host.kept.write(*(PutValue(namespace=_NAMESPACE, key=key, value=None) for key in gone))
        for key in gone:
            known.pop(key, None)
