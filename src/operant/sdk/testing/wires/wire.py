"""What a protocol must be able to do; everything else about a scripted answer is the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from operant.sdk.testing.script import Chosen, Step

Json = dict[str, Any]
encode = msgspec.json.encode


class Wrong(Exception):
    """What the real service would refuse about a request, in a sentence."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status


class Request(msgspec.Struct):
    """A request as it came; `path` is without its query, names of headers are in lower case."""

    path: str
    query: str
    headers: Mapping[bytes, bytes]
    body: Json
    size: int = 0

    def header(self, name: str) -> str:
        """Return a header, empty where there is none."""
        return self.headers.get(name.encode(), b"").strip().decode("latin-1")

    @property
    def model(self) -> str:
        """Return the model that the body names."""
        return str(self.body.get("model") or "")


class Answer(msgspec.Struct):
    """What is to be said to a request; `shared` bytes of it were in the conversation's request before."""

    request: Request
    chosen: Chosen
    shared: int = 0

    @property
    def step(self) -> Step:
        """Return the step of the script."""
        return self.chosen.step


class Wire(Protocol):
    """One protocol, from the server's side."""

    def check(self, request: Request) -> None:
        """Raise `Wrong` for what the real service refuses. Must not raise anything else, whatever the body is."""
        ...

    def conversation(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Return the messages as `choose` reads them. Called only with what was checked."""
        ...

    def streams(self, request: Request) -> bool:
        """Tell whether the reply is wanted as events."""
        ...

    def whole(self, answer: Answer) -> bytes:
        """Return the reply in one piece. Raises `Wrong` where the protocol makes an error of the step."""
        ...

    def events(self, answer: Answer) -> list[bytes]:
        """Return the reply as events, each with the blank line that ends it; the last one says that it is whole."""
        ...

    def error(self, sentence: str, at: int) -> bytes:
        """Return the event of an error in the middle of a stream, after `at` events."""
        ...

    def refusal(self, status: int, sentence: str) -> bytes:
        """Return the body of an error."""
        ...


class InOnePiece:
    """The half of a wire that has no streams."""

    def streams(self, request: Request) -> bool:
        """Say that nothing is streamed."""
        return False

    def events(self, answer: Answer) -> list[bytes]:
        """Return no events."""
        return []

    def error(self, sentence: str, at: int) -> bytes:
        """Return what no stream will have."""
        return b""


def event(name: str, data: Any) -> bytes:
    """Return a named server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encode(data))


def data(value: Any) -> bytes:
    """Return a server-sent event without a name."""
    return b"data: %s\n\n" % encode(value)
