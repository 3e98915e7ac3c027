"""Show tool calls to a person: short while they run, whole when somebody must decide."""

from __future__ import annotations

import json
from typing import cast

from operant.cli.inert import exposed, one_line
from operant.kernel.records import Json

MARKS = {"ok": "✓", "error": "✗", "denied": "✗", "interrupted": "!", "cancelled": "■", "timeout": "✗"}
_SHORT = 100


def parsed(arguments: str) -> Json:
    """Read arguments as a model wrote them; what is no object is shown as it is."""
    try:
        data = json.loads(arguments or "{}")
    except ValueError:
        return {"": arguments}
    return cast("Json", data) if isinstance(data, dict) else {"": arguments}


def asked_for(arguments: Json, written: str) -> Json:
    """Return the arguments as they stand, without those that the model left at their default."""
    wanted = parsed(written)
    return {name: value for name, value in arguments.items() if name in wanted} or arguments


def short(arguments: Json, width: int = _SHORT) -> str:
    """Say what a call is about, in one line: the first argument's value, then the others by name."""
    items = [(name, _value(value)) for name, value in arguments.items() if value not in (None, "", [], {})]
    if not items:
        return ""
    first, *rest = items
    words = [first[1], *(f"{name}={value}" for name, value in rest)]
    return one_line(" ".join(words), width)


def whole(arguments: Json) -> list[str]:
    """Return every argument in full, with what cannot be seen written out."""
    lines: list[str] = []
    for name, value in arguments.items():
        text = exposed(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2))
        first, *rest = text.split("\n")
        if rest:
            lines += [f"{exposed(name)}:", *(f"  {line}" for line in (first, *rest))]
        else:
            lines.append(f"{exposed(name)}: {first}")
    return lines


def outcome_note(outcome: str) -> str:
    """Say how a call ended, where its mark does not."""
    return "" if outcome in ("ok", "error") else outcome


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
