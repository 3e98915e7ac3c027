"""JSON-RPC 2.0, one message a line: the shapes that both ends of a socket agree on."""

from __future__ import annotations

from typing import Any

import msgspec

LONGEST = 8 * 1024 * 1024
"""Bytes of one line that a server reads; longer ones end the connection."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
OURS = -32000


class ErrorData(msgspec.Struct, frozen=True):
    """The stable code of an error, and what to do about it."""

    code: str = "broken"
    hint: str = ""


class Fault(msgspec.Struct, frozen=True):
    """Why a request was not carried out."""

    code: int
    message: str
    data: ErrorData = ErrorData()


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request; without an id it is a notification."""

    method: str
    params: Any = None
    id: int | str | None = None
    jsonrpc: str = "2.0"


class Result(msgspec.Struct, frozen=True):
    """An answer."""

    id: int | str | None
    result: Any
    jsonrpc: str = "2.0"


class Failure(msgspec.Struct, frozen=True):
    """An answer that is an error."""

    id: int | str | None
    error: Fault
    jsonrpc: str = "2.0"


class Incoming(msgspec.Struct, frozen=True):
    """Anything that a client may be sent: an answer or a notification."""

    id: int | str | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: Fault | None = None


_encoder = msgspec.json.Encoder()
_request = msgspec.json.Decoder(Request)
_incoming = msgspec.json.Decoder(Incoming)


def encode(message: Request | Result | Failure) -> bytes:
    """Make the line of a message."""
    return _encoder.encode(message) + b"\n"


def read_request(line: bytes) -> Request:
    """Read a request. Raises `msgspec.DecodeError` for no JSON, `msgspec.ValidationError` for no request."""
    return _request.decode(line)


def read_incoming(line: bytes) -> Incoming:
    """Read what a server sent. Raises `msgspec.DecodeError`."""
    return _incoming.decode(line)
