"""A route as data, and the one adapter that makes a handler of it: typed in, typed out, described by itself."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import msgspec
from aiohttp import web

from operant.ext.gateway.problem import Rejected, answer, fault, rejected
from operant.sdk import Client, Denied, OperantError, Principal, Record, SessionHistory, allowed

MOST_BODY = 8 * 1024 * 1024
"""Bytes of a request's JSON; files go another way."""
BODY_S = 30.0
"""Seconds that a body may take to arrive."""
MOST_OPEN = 16 * 1024
OPEN_S = 5.0
"""The same for those whom nobody knows yet."""

PRINCIPAL = web.RequestKey("principal", Principal)
BODY = web.RequestKey("body", bytes)

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Q = TypeVar("Q")
B = TypeVar("B")

_log = logging.getLogger("operant.gateway")


class Nothing(Record):
    """No parameters."""


@dataclass(frozen=True)
class Call(Generic[Q, B]):
    """One request, read and checked."""

    request: web.Request
    principal: Principal
    client: Client
    query: Q
    body: B

    def path(self, name: str) -> str:
        """Return a part of the path."""
        return self.request.match_info[name]


Handle = Callable[[Any], Awaitable[Any]]


@dataclass(frozen=True)
class Route:
    """One operation: what it takes, what it returns, and one sentence about it.

    `sends` is a media type for what is not JSON; `open`: it needs no token. `status` is that of success.
    """

    method: Method
    path: str
    handle: Handle
    summary: str
    tag: str
    query: Any = Nothing
    body: Any = None
    returns: Any = None
    status: int = 200
    sends: str = "application/json"
    takes: str = "application/json"
    also: Mapping[str, str] = field(default_factory=dict[str, str])
    """More that it may answer: media type to what it is."""

    @property
    def open(self) -> bool:
        """Tell whether it answers without a token."""
        return self.tag == "open"


def opener(
    route: Route, client_of: Callable[[Principal], Client]
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Make aiohttp's handler of a route."""

    async def handler(request: web.Request) -> web.StreamResponse:
        principal = request.get(PRINCIPAL) or Principal(kind="client", id="nobody")
        call = Call(
            request=request,
            principal=principal,
            client=client_of(principal),
            query=_query(request, route.query),
            body=None if route.body is None else await _body(request, route),
        )
        result = await route.handle(call)
        return result if isinstance(result, web.StreamResponse) else reply(request, result, route.status)

    return handler


def reply(request: web.Request, result: Any, status: int = 200) -> web.Response:
    """Make a JSON response, with a tag by which a reader can ask whether it has changed."""
    data = msgspec.json.encode(result)
    if request.method not in ("GET", "HEAD"):
        return web.Response(status=status, body=data, content_type="application/json")
    tag = f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    return web.Response(status=status, body=data, content_type="application/json", headers=headers)


def need_read(who: Principal) -> None:
    """Raise `Denied` for who may not read histories; what watches them does not ask the kernel for each."""
    if not allowed(who, SessionHistory.capability):
        raise Denied("This token may not watch sessions.", f"It needs {SessionHistory.capability!r}.")


async def supervised(
    request: web.Request, work: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Carry out a request; whatever goes wrong comes back as problem details."""
    done = (await asyncio.gather(work(request), return_exceptions=True))[0]
    if isinstance(done, asyncio.CancelledError | ConnectionError):
        raise done
    if isinstance(done, web.HTTPException):  # these are responses too, and not ours
        done = _known(request, done)
    elif isinstance(done, web.StreamResponse):
        return done
    elif isinstance(done, OperantError):
        done = rejected(done)
    elif not isinstance(done, Rejected):
        _log.error("%s %s failed", request.method, request.path[:200], exc_info=done)
        done = fault(done)
    return answer(done, request.path)


def _known(request: web.Request, error: web.HTTPException) -> Rejected:
    """Say what the router or the reader of bodies refused."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return Rejected(
            405, f"{request.method} is not for this path.", f"It takes {allowed}.", headers={"Allow": allowed}
        )
    if isinstance(error, web.HTTPNotFound):
        return Rejected(404, "There is nothing here.", "See /openapi.json for what there is.", code="not_found")
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return Rejected(413, "This is more than is taken at once.", "Send less, or raise `gateway.upload_mb`.")
    return Rejected(error.status, error.reason or "This cannot be done.")


def _query(request: web.Request, kind: Any) -> Any:
    try:
        return msgspec.convert(dict(request.query), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Rejected(422, f"The query does not fit: {error}.", "See /openapi.json.", code="invalid") from error


async def read(request: web.Request, limit: int, seconds: float = BODY_S) -> bytes:
    """Return a request's body. Raises `Rejected` for one that is too large, too slow or compressed."""
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Rejected(415, "Compressed bodies are not taken.", "Send it as it is.")
    if (request.content_length or 0) > limit:
        raise Rejected(413, f"This is more than {limit:,} bytes.", "Send less at once.")
    try:
        async with asyncio.timeout(seconds):
            return await _gathered(request, limit)
    except TimeoutError as error:
        raise Rejected(408, "The request took too long to arrive.", "Send it again.") from error


async def _gathered(request: web.Request, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.content.iter_chunked(1 << 16):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise Rejected(413, f"This is more than {limit:,} bytes.", "Send less at once.")
    return b"".join(pieces)


async def _body(request: web.Request, route: Route) -> Any:
    if request.content_type != "application/json":
        raise Rejected(415, "The body must be JSON.", "Send `Content-Type: application/json`.", code="invalid")
    data = request.get(BODY)
    if data is None:
        data = await (read(request, MOST_OPEN, OPEN_S) if route.open else read(request, MOST_BODY))
    try:
        return msgspec.json.decode(data, type=route.body)
    except msgspec.ValidationError as error:
        raise Rejected(422, f"The body does not fit: {error}.", "See /openapi.json.", code="invalid") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(400, f"The body is not JSON: {error}.", "Send one object.", code="invalid") from error
