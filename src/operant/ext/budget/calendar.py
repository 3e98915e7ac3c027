"""Days as budgets and reports count them: UTC, `YYYY-MM-DD`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta


def day_of(at: int) -> str:
    """Return the day of a time in microseconds."""
    return f"{datetime.fromtimestamp(at // 1_000_000, UTC):%Y-%m-%d}"


def days_before(day: str, days: int) -> str:
    """Return the day so many days earlier; negative: later."""
    return (date.fromisoformat(day) - timedelta(days=days)).isoformat()
