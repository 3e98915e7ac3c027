"""What is asked over HTTP, what comes back, and what can go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from operant.kit.egress import Place, Reach

MEGABYTE = 1_048_576


class HttpError(Exception):
    """Report a request that got no whole answer; the message is for a person and holds no header."""


class HttpUnreachable(HttpError):
    """Report that no connection came about."""


class HttpTimeout(HttpError):
    """Report that nothing came for too long."""


class HttpCut(HttpError):
    """Report a connection that ended in the middle."""


class HttpDenied(HttpError):
    """Report an address that may not be dialled, or a redirect that may not be followed."""


class Get(msgspec.Struct, frozen=True):
    """One request of a tool, with every limit that it has."""

    url: str
    headers: Mapping[str, str] = {}
    method: str = "GET"
    body: bytes = b""
    max_bytes: int = 5 * MEGABYTE
    """Bytes of the body, unpacked; what is more is left out, and `truncated` says so."""
    total_s: float = 30.0
    idle_s: float = 15.0
    redirects: int = 5
    """Redirects that are followed; with 0 a redirect is the answer."""
    reach: Reach = Reach.PUBLIC
    origins: tuple[str, ...] = ()
    """Origins, such as `https://api.example.org`, that get the same credentials after a redirect."""
    browser: bool = False
    """Look like a browser on the wire, where the package for that is there."""


class Fetched(msgspec.Struct, frozen=True):
    """An answer: where it came from in the end, and by which way."""

    url: str
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    hops: tuple[str, ...] = ()
    """The addresses that redirected, first to last."""
    truncated: bool = False
    engine: str = "plain"
    """`plain`, or `browser` when the TLS of a browser was spoken."""


class Step(msgspec.Struct, frozen=True):
    """One request to one place: the hop of a `Get` that is due."""

    place: Place
    method: str
    headers: Mapping[str, str]
    body: bytes


class Answer(msgspec.Struct, frozen=True):
    """What one hop answered; the body of a redirect is not read."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    truncated: bool = False


class Engine(Protocol):
    """Send one step, dialling nothing but what the egress has checked, and following nothing."""

    name: str

    async def send(self, step: Step, request: Get) -> Answer:
        """Return the answer, with at most `max_bytes` of body. Raises `HttpError` and `Denied`."""
        ...


def folded(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by their names in lower case; one that comes twice is joined, but the first location counts."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if key not in joined:
            joined[key] = value
        elif key != "location":
            joined[key] = f"{joined[key]}, {value}"
    return joined
