"""An answer as bytes of HTTP, with what the script wants to go wrong in it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from operant.sdk.testing.script import Step
from operant.sdk.testing.wires.wire import Answer, Wire, Wrong

_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
_BLANK = b"\r\n"
_END = b"0\r\n\r\n"
_OVERLOADED = "The model is overloaded. Please try again later."


class Reply(msgspec.Struct):
    """An answer on its way: what comes first, the pieces in which it can break, and what says that it is whole."""

    head: bytes
    pieces: list[bytes]
    chunked: bool

    def frame(self, piece: bytes) -> bytes:
        """Return a piece as it travels."""
        return b"%x\r\n%s\r\n" % (len(piece), piece) if self.chunked else piece

    @property
    def end(self) -> bytes:
        """Return what follows the last piece."""
        return _END if self.chunked else b""


def replied(wire: Wire, answer: Answer) -> Reply:
    """Put an answer into a protocol's bytes."""
    step = answer.step
    headers = dict(step.headers)
    if step.retry_after is not None:
        headers["Retry-After"] = str(step.retry_after)
    if step.body is not None:
        return _broken(step, head(step.status, len(step.body.encode()), headers), step.body.encode())
    if step.status != 200:
        return _failed(wire, step, headers, Wrong("scripted failure", step.status))
    if wire.streams(answer.request):
        return Reply(head=_STREAM + _fields(headers) + _BLANK, pieces=_events(wire, answer), chunked=True)
    try:
        if step.error_event is not None:
            raise Wrong(_OVERLOADED, 503)
        said = wire.whole(answer)
    except Wrong as wrong:
        return _failed(wire, step, headers, wrong)
    return _broken(step, head(200, len(said), headers), said)


def _events(wire: Wire, answer: Answer) -> list[bytes]:
    step = answer.step
    events = wire.events(answer)
    if step.error_event is not None:
        events = [*events[: step.error_event], wire.error(_OVERLOADED, step.error_event)]
    elif step.no_done:
        events.pop()
    return [event.replace(b"\n", b"\r\n") for event in events] if step.crlf else events


def _failed(wire: Wire, step: Step, headers: Mapping[str, str], wrong: Wrong) -> Reply:
    failed = wire.refusal(wrong.status, wrong.sentence)
    return _broken(step, head(wrong.status, len(failed), headers), failed)


def _broken(step: Step, start: bytes, body: bytes) -> Reply:
    """Cut a reply in one piece in two where the script wants to leave it half said."""
    if step.cut_after is None and step.stall_after is None:
        return Reply(head=start, pieces=[body], chunked=False)
    # Empty pieces in between: however late the fault is, the second half never goes out.
    half = len(body) // 2
    last = min(one for one in (step.cut_after, step.stall_after) if one is not None)
    return Reply(head=start, pieces=[body[:half], *[b""] * last, body[half:]], chunked=False)


def head(status: int, size: int, headers: Mapping[str, str]) -> bytes:
    """Return the head of a reply in one piece."""
    kind = b"" if any(name.lower() == "content-type" for name in headers) else b"Content-Type: application/json\r\n"
    return b"HTTP/1.1 %d X\r\n%s%sContent-Length: %d\r\n\r\n" % (status, kind, _fields(headers), size)


def _fields(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
