"""Lists of hosts that may be reached, read by the same parser as everything that is dialled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from operant.kit.egress import parse_host

_WEB = (80, 443)
_PORT = re.compile(r":[0-9]+$")


class Verdict(NamedTuple):
    """What was decided about a place that somebody wanted to reach, and why not."""

    host: str
    port: int
    allowed: bool
    reason: str = ""


class Rules:
    """Which hosts may be reached: `example.org`, `*.example.org` (what is below it), each maybe with `:port`.

    Without a port 80 and 443 are meant. None allows every host that the egress allows.
    """

    def __init__(self, allow: Sequence[str] | None = None) -> None:
        """Raise `Denied` for a pattern that is none."""
        self._all = allow is None
        self._patterns = tuple(_pattern(one) for one in allow or ())

    def refusal(self, host: str, port: int) -> str:
        """Return why a host, in its normal form, may not be reached; empty when it may."""
        if self._all or any(one.matches(host, port) for one in self._patterns):
            return ""
        return f"{host}:{port} is not on the list of hosts that may be reached."


class _Pattern(NamedTuple):
    host: str
    ports: tuple[int, ...]
    below: bool

    def matches(self, host: str, port: int) -> bool:
        named = host.endswith("." + self.host) if self.below else host == self.host
        return named and port in self.ports


def _pattern(text: str) -> _Pattern:
    host, port = parse_host(text.removeprefix("*."), _WEB[0])
    return _Pattern(host, (port,) if _PORT.search(text) else _WEB, text.startswith("*."))
