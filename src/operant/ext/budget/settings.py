"""What may be spent."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.sdk import Record

Usd = Annotated[float, Meta(ge=0, description="US dollars")]
Tokens = Annotated[int, Meta(ge=0, description="tokens in and out")]


class Purse(Record):
    """How much one thing may cost; what is not given is not limited."""

    usd: Usd | None = None
    tokens: Tokens | None = None

    @property
    def binds(self) -> bool:
        """Tell whether anything is limited."""
        return self.usd is not None or self.tokens is not None


class BudgetSettings(Record):
    """Budgets per turn and per session; those of the day, of agents, users and background work are per UTC day.

    `background` is for jobs, heartbeats and agents called by agents; what they spend counts as the day's as well.
    """

    turn: Purse = Purse()
    session: Purse = Purse()
    day: Purse = Purse()
    agents: dict[str, Purse] = {}
    users: dict[str, Purse] = {}
    background: Purse = Purse()

    @property
    def binds(self) -> bool:
        """Tell whether there is any budget at all."""
        purses = (self.turn, self.session, self.day, self.background)
        return any(one.binds for one in (*purses, *self.agents.values(), *self.users.values()))
