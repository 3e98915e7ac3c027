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

_DAYS = {"today": 1, "7d": 7, "30d": 30}


@click.command(help="Show tokens and money by day and model (days are UTC).")
@click.option("--range", "span", type=click.Choice([*_DAYS, "all"]), default="7d", show_default=True)
@json_option
def command(span: str, as_json: bool) -> None:
    """Print usage."""
    rows = call(UsageList(since_day=since(span, SystemClock().now())))
    if as_json:
        print_json({"range": span, "total": _total(rows), "rows": rows})
        return
    table = [
        (
            day,
            model,
            purse,
            str(usage.calls),
            figures.tokens(usage.input),
            figures.share(usage),
            figures.tokens(usage.output),
            figures.money(usage.usd),
        )
        for (day, model, purse), usage in _grouped(rows)
    ]
    heads = ("day", "model", "purse", "calls", "in", "of it", "out", "cost")
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


def _grouped(rows: Sequence[UsageRow]) -> list[tuple[tuple[str, str, str], Usage]]:
    sums: dict[tuple[str, str, str], Usage] = {}
    for row in rows:
        key = (row.day, row.model, row.purse)
        sums[key] = sums.get(key, Usage()) + row.usage
    return sorted(sums.items(), reverse=True)


def _total(rows: Sequence[UsageRow]) -> Usage:
    return sum((row.usage for row in rows), Usage())
