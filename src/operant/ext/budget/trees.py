"""A turn of a person and all that works for it, as one: sub-agents spend out of the purse of that turn."""

from __future__ import annotations

from operant.ext.budget.ledger import Amount
from operant.sdk import SessionInfo, Store

_DEEPEST = 16


class Trees:
    """Know the session that each works for in the end, and what the turn there has spent with all below it.

    What sub-agents spent that had ended before a restart is not known here; the log of their own sessions has it.
    """

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        self._spent: dict[str, dict[str, Amount]] = {}

    async def place(self, store: Store, session: SessionInfo) -> None:
        """Find out for whom a session works; asked before each call, answered from memory after the first."""
        if session.key in self._roots:
            return
        root, info = session.key, session
        for _ in range(_DEEPEST):
            if not _works_for_another(info):
                break
            root, head = info.parent, await store.head(info.parent)
            info = head.info if head else SessionInfo(key=root, agent="")
        self._roots[session.key] = root

    def root(self, session: str) -> str:
        """Return the session whose turn pays."""
        return self._roots.get(session, session)

    def note(self, session: str, amount: Amount) -> None:
        """Take over what a session's own turn has spent so far, as the log has it."""
        self._spent.setdefault(self.root(session), {})[session] = amount

    def add(self, session: str, amount: Amount) -> None:
        """Count a call before the log has it."""
        there = self._spent.setdefault(self.root(session), {})
        there[session] = there.get(session, Amount()) + amount

    def spent(self, session: str) -> Amount:
        """Return what a session's turn, those above it and those below it have spent together."""
        return sum(self._spent.get(self.root(session), {}).values(), Amount())

    def ended(self, session: str) -> None:
        """Begin anew with the next turn of a person; what a sub-agent spent counts on until then."""
        if self.root(session) == session:
            self._spent.pop(session, None)
        self._roots.pop(session, None)


def _works_for_another(info: SessionInfo) -> bool:
    """Tell a sub-agent's session from a copy, which has a parent too."""
    return bool(info.parent) and info.key.startswith("agents/") and "/" in info.agent
