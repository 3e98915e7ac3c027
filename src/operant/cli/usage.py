"""`operant usage`: tokens and money."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from operant.cli import figures
from operant.cli.here import call
from operant.cli.output import json_option, print_json, print_table, say
from operant.kernel.records import Usage, UsageRow
from operant.kernel.syscalls import UsageList
from operant.kit.clock import SystemClock

_KEYS = ("day", "model", "agent", "session", "user", "purse")
_DAYS = {"today": 1, "7d": 7, "30d": 30}


@click.command(help="Show tokens and money by day, model, agent or session (days are UTC).")
@click.option("--range", "span", type=click.Choice([*_DAYS, "all"]), default="7d", show_default=True)
@click.option("--by", "keys", type=click.Choice(_KEYS), multiple=True, default=("day", "model"), show_default=True)
@json_option
def command(span: str, keys: tuple[str, ...], as_json: bool) -> None:
    """Print usage."""
    rows = call(UsageList(since_day=since(span, SystemClock().now())))
    if as_json:
        print_json({"range": span, "total": _total(rows), "rows": rows})
        return
    table = [
        (
            *names,
            str(usage.calls),
            figures.tokens(usage.input),
            figures.share(usage),
            figures.tokens(usage.output),
            figures.money(usage.usd),
        )
        for names, usage in _grouped(rows, keys)
    ]
    heads = (*keys, "calls", "in", "of it", "out", "cost")
    print_table(heads, table, "Nothing was used in this time.")
    if table:
        total = _total(rows)
        say(f"\ntotal: {total.calls} calls · {figures.used(total)}")


def since(span: str, now: int) -> str:
    """Return the first day of a span that ends today, as YYYY-MM-DD; empty for all."""
    if span not in _DAYS:
        return ""
    today = datetime.fromtimestamp(now / 1_000_000, UTC)
    return (today - timedelta(days=_DAYS[span] - 1)).strftime("%Y-%m-%d")


def _grouped(rows: Sequence[UsageRow], keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], Usage]]:
    sums: dict[tuple[str, ...], Usage] = {}
    for row in rows:
        key = tuple(str(getattr(row, name)) for name in keys)
        sums[key] = sums.get(key, Usage()) + row.usage
    return sorted(sums.items(), reverse=True)


def _total(rows: Sequence[UsageRow]) -> Usage:
    return sum((row.usage for row in rows), Usage())
