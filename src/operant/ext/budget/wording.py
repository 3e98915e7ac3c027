"""How a refused model call is told to the person: one line with what is used, the limit, and what to do."""

from __future__ import annotations

from operant.ext.budget.ledger import Amount, Short

_WHOSE = {
    "turn": "The budget of this turn",
    "session": "The budget of this session",
    "day": "Today's budget",
    "agent": "Today's budget of agent {name}",
    "user": "Today's budget of {name}",
    "background": "Today's budget for background work",
}
_THEN = {"turn": "Say “continue” to go on.", "session": "Start a new session, or raise budgets.session."}


def refusal(short: Short, tomorrow: str) -> str:
    """Say that a budget does not reach; `tomorrow` is the day on which those of the day start anew."""
    scope, unit = short.scope, short.unit
    limit = Amount(usd=scope.purse.usd or 0.0, tokens=scope.purse.tokens or 0)
    whose = _WHOSE[scope.kind].format(name=scope.name)
    held = _said(short.held, unit)
    waiting = f", {held} held for calls under way" if _value(short.held, unit) else ""
    then = _THEN.get(scope.kind, f"It starts anew on {tomorrow} at 00:00 UTC.")
    return (
        f"{whose} does not reach: {_said(short.spent, unit)} of {_said(limit, unit)} used{waiting}, "
        f"and the next call may take up to {_said(short.wanted, unit)}. {then}"
    )


def priceless(model: str) -> str:
    """Say that a money budget cannot bind a model without a price."""
    provider = model.partition("/")[0]
    return (
        f"No price is known for {model}, so a money budget cannot bind: set providers.{provider}.prices, "
        "or limit tokens instead."
    )


def _value(amount: Amount, unit: str) -> float:
    return amount.usd if unit == "usd" else amount.tokens


def _said(amount: Amount, unit: str) -> str:
    if unit == "tokens":
        return f"{amount.tokens:,} tokens"
    return f"${amount.usd:.4f}" if 0 < amount.usd < 0.01 else f"${amount.usd:.2f}"
