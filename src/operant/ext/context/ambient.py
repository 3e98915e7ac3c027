"""What changes by the minute travels with the newest message: the time at which it was accepted."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from operant.sdk import DispatchInput, DispatchOutput

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME_LINE = re.compile(r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d [^\]\n]*\]\n?")


async def with_time(input: DispatchInput, output: DispatchOutput) -> DispatchOutput:
    """Put the local time of a message beside it; the same message always gets the same line."""
    line = time_line(input.item.accepted, input.agent.timezone)
    ambient = f"{line}\n{output.ambient}" if output.ambient else line
    return msgspec.structs.replace(output, ambient=ambient)


def time_line(at: int, timezone: str) -> str:
    """Say a time in microseconds as `[Fri 2026-11-20 21:34 Europe/Berlin]`; an unknown zone is told in UTC."""
    zone = _zone(timezone)
    local = (_EPOCH + timedelta(microseconds=at)).astimezone(zone or UTC)
    return f"[{_DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M} {timezone if zone else 'UTC'}]"


def _zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo  # on first use: it reads the machine's zone tables

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
