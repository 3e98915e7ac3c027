"""What two sets of rules both allow; never more than either."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from operant.kernel.records import Permissions


def narrow(
    bounds: Permissions, *, tools: tuple[str, ...] | None = None, skills: tuple[str, ...] | None = None
) -> Permissions:
    """Return what both allow: the patterns of one that lie wholly within a pattern of the other."""
    return msgspec.structs.replace(
        bounds,
        tools=bounds.tools if tools is None else _common(bounds.tools, tools),
        skills=bounds.skills if skills is None else _common(bounds.skills, skills),
    )


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    within = [a for a in one if any(_covers(b, a) for b in other)] + [
        b for b in other if any(_covers(a, b) for a in one)
    ]
    return tuple(dict.fromkeys(within))


def _covers(wide: str, narrow: str) -> bool:
    """Tell whether all that one pattern fits is fitted by another; where that cannot be seen, it is not."""
    if wide in (narrow, "*"):
        return True
    if any(sign in narrow for sign in "?["):
        return False
    if "*" in narrow and any(sign in wide for sign in "?["):
        return False
    return fnmatchcase(narrow, wide)


def joined(*lists: Iterable[str]) -> tuple[str, ...]:
    """Return all of them, each once."""
    return tuple(dict.fromkeys(one for many in lists for one in many))
