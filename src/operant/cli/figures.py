"""Say numbers as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from operant.kernel.records import Usage

_SECOND = 1_000_000


def tokens(count: int) -> str:
    """Say a number of tokens."""
    if count < 1_000:
        return str(count)
    if count < 10_000:
        return f"{count / 1_000:.1f}k"
    return f"{count / 1_000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def seconds(duration: float) -> str:
    """Say a duration."""
    if duration < 0.1:
        return f"{duration * 1_000:.0f} ms"
    if duration < 60:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} days"


def ago(at: int, now: int) -> str:
    """Say how long a time in microseconds is past."""
    past = (now - at) / _SECOND
    return "never" if not at else "now" if past < 1 else f"{seconds(float(int(past))).replace('.0 s', ' s')} ago"


def money(usd: float) -> str:
    """Say an amount of US dollars; small ones keep two digits that tell something."""
    if usd <= 0:
        return "$0"
    return f"${usd:.2f}" if usd >= 0.1 else f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"


def size(count: int) -> str:
    """Say a number of bytes."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1_000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1_000
    return f"{amount:.1f} TB"


def share(usage: Usage) -> str:
    """Say how much of the input came from the provider's cache."""
    return f"{100 * usage.cached / usage.input:.0f} % cached" if usage.input else "0 % cached"


def used(usage: Usage) -> str:
    """Say what was used, in one line."""
    words = f"{tokens(usage.input)} in"
    if usage.cached:
        words += f" ({share(usage)})"
    words += f" · {tokens(usage.output)} out"
    return f"{words} · {money(usage.usd)}" if usage.usd else words


def clock_time(at: int) -> str:
    """Say the time of day, here, of a time in microseconds."""
    return _local(at).strftime("%H:%M:%S")


def moment(at: int) -> str:
    """Say date and time, here, of a time in microseconds."""
    return _local(at).strftime("%Y-%m-%d %H:%M:%S")


def _local(at: int) -> datetime:
    return datetime.fromtimestamp(at / _SECOND, UTC).astimezone()
