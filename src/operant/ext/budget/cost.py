"""What tokens cost."""

from __future__ import annotations

from operant.ext.budget.ledger import Amount
from operant.sdk import Price, Usage

_MILLION = 1_000_000


def at_most(estimate: int, output: int, price: Price | None) -> Amount:
    """Return what a call can cost: all of its input at the dearest rate, all of its output used."""
    if price is None:
        return Amount(tokens=estimate + output)
    rates = price.rates(estimate)
    rate = max(rates.input, rates.cache_write or 0.0)
    return Amount(usd=(estimate * rate + output * rates.output) / _MILLION, tokens=estimate + output)


def at_least(estimate: int, price: Price | None) -> Amount:
    """Return what a call has cost that was broken off: a provider charges the input, of its output nobody knows."""
    usage = Usage(input=estimate)
    return Amount(usd=price.of(usage) if price else 0.0, tokens=estimate)


def amount_of(usage: Usage, usd: float | None = None) -> Amount:
    """Return what budgets count of a usage; `usd` is its cost where that was found out later."""
    return Amount(usd=usage.usd if usd is None else usd, tokens=usage.input + usage.output)
