"""Paths of the gateway that another extension answers: what comes in, what goes out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from operant.kernel.records import Principal


@dataclass(frozen=True)
class HttpRequest:
    """A request that the gateway has let in: right host, no foreign page, a token that is valid.

    `base` is how the client called us (`http://127.0.0.1:8000`), `path` the whole path and `below` what comes after
    the mounted one, both decoded; `query` is as it was sent. Names of headers are in lower case; what let the client in
    (`authorization`, `cookie`) is not among them.
    """

    method: str
    base: str
    path: str
    below: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    principal: Principal

    def header(self, name: str) -> str:
        """Return the first header of a name, or an empty text."""
        return next((value for key, value in self.headers if key == name.lower()), "")


@dataclass(frozen=True)
class HttpResponse:
    """What to answer; a `body` of pieces is sent as they come, and closed when the client has gone."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | AsyncGenerator[bytes] = b""


class Frames(Protocol):
    """A WebSocket that was let in."""

    async def receive(self) -> str | None:
        """Return the next text, or None when the client has gone."""
        ...

    async def send(self, text: str) -> None:
        """Send a text; one that goes nowhere because the client has left is dropped."""
        ...

    async def close(self, reason: str) -> None:
        """Hang up, and say why in at most 120 bytes."""
        ...


Answer = Callable[[HttpRequest], Awaitable[HttpResponse]]
Talk = Callable[[HttpRequest, Frames], Awaitable[None]]


@dataclass(frozen=True)
class Mount:
    """A path, and everything below it, that an extension answers.

    `capability` is what a client needs to come that far; what it asks for then is checked again where it acts through
    `host.client(request.principal)`. An `open` one answers GET without a token, as nobody: for what everybody may read.
    One with `talk` also takes WebSockets, each for as long as `talk` runs, with texts of at most `longest` bytes.
    """

    path: str
    answer: Answer
    summary: str
    methods: frozenset[str] = field(default_factory=lambda: frozenset({"GET", "POST"}))
    capability: str = "kernel.read"
    open: bool = False
    talk: Talk | None = None
    longest: int = 1 << 20
