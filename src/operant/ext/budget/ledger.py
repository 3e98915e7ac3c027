"""What has been spent and what is held for calls under way.

Looking, holding and settling never wait, so that no other session gets in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from operant.ext.budget.settings import Purse
from operant.sdk import Record

Kind = Literal["turn", "session", "day", "agent", "user", "background"]
Key = tuple[Kind, str]

_EPSILON = 1e-9


class Amount(Record):
    """Money and tokens."""

    usd: float = 0.0
    tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(usd=self.usd + other.usd, tokens=self.tokens + other.tokens)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(usd=self.usd - other.usd, tokens=self.tokens - other.tokens)


class Scope(Record):
    """One budget that a call must fit: whose it is and how much is in it.

    `spent` is given where the log knows it better than the ledger, as for a turn.
    """

    kind: Kind
    name: str
    purse: Purse
    spent: Amount | None = None

    @property
    def key(self) -> Key:
        """Return what the ledger keeps totals under."""
        return (self.kind, self.name)


class Owner(Record):
    """Who holds money: one session makes one call of a purpose at a time."""

    session: str
    purpose: str


class Hold(Record):
    """An amount kept for a call under way, and the budgets that it is kept in; `least` is what it costs broken off."""

    amount: Amount
    least: Amount
    keys: frozenset[Key]
    made: int


class Short(Record):
    """A budget that a call does not fit, and where it stands."""

    scope: Scope
    spent: Amount
    held: Amount
    wanted: Amount
    unit: Literal["usd", "tokens"]


class Ledger:
    """Totals of the day and of sessions, and holds."""

    def __init__(self, day: str) -> None:
        self.day = day
        self._spent: dict[Key, Amount] = {}
        self._held: dict[Key, Amount] = {}
        self._holds: dict[str, dict[str, Hold]] = {}

    def turn_to(self, day: str) -> None:
        """Begin a new day: only sessions keep what they spent, and calls under way keep what is held for them."""
        if day != self.day:
            self.day = day
            self._spent = {key: spent for key, spent in self._spent.items() if key[0] == "session"}

    def spend(self, keys: Iterable[Key], amount: Amount) -> None:
        """Count what was spent; turns are counted by the log."""
        for key in keys:
            if key[0] != "turn":
                self._spent[key] = self._spent.get(key, Amount()) + amount

    def short(self, owner: Owner, scopes: tuple[Scope, ...], wanted: Amount) -> Short | None:
        """Return the first budget that a call does not fit, besides what others hold; None when it fits all."""
        own = self._holds.get(owner.session, {}).get(owner.purpose)
        for scope in scopes:
            spent = scope.spent or self._spent.get(scope.key, Amount())
            held = self._held.get(scope.key, Amount())
            if own is not None and scope.key in own.keys:
                held -= own.amount
            total = spent + held + wanted
            purse = scope.purse
            if purse.usd is not None and total.usd > purse.usd + _EPSILON:
                return Short(scope=scope, spent=spent, held=held, wanted=wanted, unit="usd")
            if purse.tokens is not None and total.tokens > purse.tokens:
                return Short(scope=scope, spent=spent, held=held, wanted=wanted, unit="tokens")
        return None

    def hold(self, owner: Owner, hold: Hold) -> None:
        """Keep an amount for a call, instead of what its owner held before."""
        self.release(owner)
        self._holds.setdefault(owner.session, {})[owner.purpose] = hold
        for key in hold.keys:
            self._held[key] = self._held.get(key, Amount()) + hold.amount

    def release(self, owner: Owner, at: int | None = None) -> Hold | None:
        """Let go of what an owner holds; with `at`, only if it was held by then."""
        holds = self._holds.get(owner.session, {})
        hold = holds.get(owner.purpose)
        if hold is None or (at is not None and hold.made > at):
            return None
        del holds[owner.purpose]
        for key in hold.keys:
            self._held[key] -= hold.amount
        if not holds:
            del self._holds[owner.session]
        if not self._holds:
            self._held.clear()  # forgets what the rounding of many sums left over
        return hold

    def release_session(self, session: str, at: int) -> tuple[Hold, ...]:
        """Let go of everything that a session held by a time, and return it."""
        owners = [Owner(session=session, purpose=purpose) for purpose in self._holds.get(session, ())]
        return tuple(hold for owner in owners if (hold := self.release(owner, at)) is not None)
