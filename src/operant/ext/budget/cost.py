"""What tokens cost."""

from __future__ import annotations

from operant.ext.budget.ledger import Amount
from operant.sdk import Price, Usage

_MILLION = 1_000_000


def cost_of(usage: Usage, price: Price) -> float:
    """Return US dollars for a call; `usage.input` includes the cached and the cache-written tokens."""
    cached = price.input if price.cached is None else price.cached
    written = price.input if price.cache_write is None else price.cache_write
    fresh = max(0, usage.input - usage.cached - usage.cache_write)
    total = fresh * price.input + usage.cached * cached + usage.cache_write * written + usage.output * price.output
    return total / _MILLION


def at_most(estimate: int, output: int, price: Price | None) -> Amount:
    """Return what a call can cost: all of its input at the dearest rate, all of its output used."""
    if price is None:
        return Amount(tokens=estimate + output)
    rate = max(price.input, price.cache_write or 0.0)
    return Amount(usd=(estimate * rate + output * price.output) / _MILLION, tokens=estimate + output)


def amount_of(usage: Usage, usd: float | None = None) -> Amount:
    """Return what budgets count of a usage; `usd` is its cost where that was found out later."""
    return Amount(usd=usage.usd if usd is None else usd, tokens=usage.input + usage.output)
