"""What was used: `usage.report`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from operant.ext.budget.calendar import day_of, days_before
from operant.sdk import Host, Principal, Usage, UsageLine, UsageRange, UsageReport, UsageRow, UsageSummary

_DAYS: dict[str, int] = {"today": 0, "7d": 6, "30d": 29}


class Reporter:
    """Answer `usage.report`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def report(self, principal: Principal, call: UsageReport) -> UsageSummary:
        """Return the report."""
        since = ""
        if call.range != "all":
            since = days_before(day_of(self._host.clock.now()), _DAYS[call.range])
        return report_of(call.range, since, tuple(await self._host.kept.usage(since)))


def report_of(span: UsageRange, since_day: str, rows: tuple[UsageRow, ...]) -> UsageSummary:
    """Take usage apart."""
    return UsageSummary(
        range=span,
        since_day=since_day,
        total=_line("total", rows),
        days=tuple(sorted(_by(rows, lambda row: row.day), key=lambda line: line.name)),
        models=_by(rows, lambda row: row.model),
        agents=_by(rows, lambda row: row.agent),
        sessions=_by(rows, lambda row: row.session),
        purses=_by(rows, lambda row: row.purse),
        rows=rows,
    )


def _by(rows: Iterable[UsageRow], name: Callable[[UsageRow], str]) -> tuple[UsageLine, ...]:
    grouped: dict[str, list[UsageRow]] = {}
    for row in rows:
        grouped.setdefault(name(row), []).append(row)
    lines = [_line(one, group) for one, group in grouped.items()]
    return tuple(sorted(lines, key=lambda line: (-line.usage.usd, -line.usage.input - line.usage.output, line.name)))


def _line(name: str, rows: Iterable[UsageRow]) -> UsageLine:
    usage = sum((row.usage for row in rows), Usage())
    share = usage.cached / usage.input if usage.input else 0.0
    return UsageLine(name=name, usage=usage, cached_share=round(share, 4))
