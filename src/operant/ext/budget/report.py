"""What was used: `usage.report`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from operant.ext.budget.calendar import day_of, days_before
from operant.sdk import Host, Principal, Record, Syscall, Usage, UsageRow

Range = Literal["today", "7d", "30d", "all"]

_DAYS: dict[Range, int] = {"today": 0, "7d": 6, "30d": 29}


class Line(Record):
    """The usage of one day, model, agent, session or purse; `cached_share` is of the input, from 0 to 1."""

    name: str
    usage: Usage
    cached_share: float = 0.0


class Report(Record):
    """Usage from a day on (empty: all), in total and taken apart; days in order, the rest dearest first."""

    range: Range
    since_day: str
    total: Line
    days: tuple[Line, ...]
    models: tuple[Line, ...]
    agents: tuple[Line, ...]
    sessions: tuple[Line, ...]
    purses: tuple[Line, ...]
    rows: tuple[UsageRow, ...]


class UsageReport(Syscall[Report]):
    """Report tokens and money by day, model, agent, session and purse."""

    call = "usage.report"
    capability = "session.read"
    returns = Report
    range: Range = "7d"


class Reporter:
    """Answer `usage.report`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def report(self, principal: Principal, call: UsageReport) -> Report:
        """Return the report."""
        since = ""
        if call.range != "all":
            since = days_before(day_of(self._host.clock.now()), _DAYS[call.range])
        return report_of(call.range, since, tuple(await self._host.kept.usage(since)))


def report_of(span: Range, since_day: str, rows: tuple[UsageRow, ...]) -> Report:
    """Take usage apart."""
    return Report(
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


def _by(rows: Iterable[UsageRow], name: Callable[[UsageRow], str]) -> tuple[Line, ...]:
    grouped: dict[str, list[UsageRow]] = {}
    for row in rows:
        grouped.setdefault(name(row), []).append(row)
    lines = [_line(one, group) for one, group in grouped.items()]
    return tuple(sorted(lines, key=lambda line: (-line.usage.usd, -line.usage.input - line.usage.output, line.name)))


def _line(name: str, rows: Iterable[UsageRow]) -> Line:
    usage = sum((row.usage for row in rows), Usage())
    share = usage.cached / usage.input if usage.input else 0.0
    return Line(name=name, usage=usage, cached_share=round(share, 4))
