"""The way to servers over HTTP: the SDK's client, dialling through ours, so that the egress judges every address.

It imports the SDK, so it is imported when a server over HTTP is connected to.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth
from mcp.client.streamable_http import streamable_http_client

from operant.ext.mcp.access import Access
from operant.ext.mcp.settings import ServerSettings
from operant.kit.egress import Denied, Place, Reach, parse
from operant.kit.exchange import Step
from operant.kit.http import Http, HttpDenied, HttpError, HttpResponse, HttpTimeout, HttpUnreachable
from operant.sdk import Host

MOST_BODY = 16 * 1024 * 1024
"""Bytes of one answer that is not a stream of events."""
IDLE_S = 300.0
_CONNECTION = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding"})
_UNPACKED = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@asynccontextmanager
async def dialled(
    access: Access, host: Host, auth: httpx2.Auth | None, *, visiting: bool = False
) -> AsyncGenerator[Any]:
    """Yield the two streams that the SDK wants, over HTTP, with the server's headers and these credentials.

    `visiting` says that a person is there who can log in.
    """
    settings = access.server.settings
    headers = {name: one.reveal() for name, one in settings.headers.items()}
    limits = httpx2.Timeout(30.0, read=IDLE_S)
    transport: httpx2.AsyncBaseTransport = _Through(host.http, _Written(access.server.settings))
    if not visiting:
        transport = _Watched(transport, access, signed=auth is not None)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, auth=auth, timeout=limits) as client,
        streamable_http_client(settings.url, http_client=client) as streams,
    ):
        yield streams


class _Body(httpx2.AsyncByteStream):
    """A body that is read as it arrives."""

    def __init__(self, response: HttpResponse, stack: AsyncExitStack) -> None:
        self._response = response
        self._stack = stack
        self._endless = response.headers.get("Content-Type", "").startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._response.pieces():
                size += len(piece)
                if size > MOST_BODY and not self._endless:
                    raise httpx2.ReadError(f"The answer is longer than {MOST_BODY:,} bytes.")
                yield piece
        except HttpError as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._stack.aclose()


class _Written:
    """What the owner wrote down, which may be anywhere; where a server sends us to for a login must be public."""

    def __init__(self, settings: ServerSettings) -> None:
        self._own = parse(settings.url)
        issuer = settings.oauth.issuer if settings.oauth is not None else ""
        self._named = [(one.host, one.port) for one in (self._own, *([parse(issuer)] if issuer else []))]

    def reach(self, place: Place) -> Reach:
        """Say how far a request to a place may reach; a name stands for another address tomorrow, a number does not."""
        fixed = self._own.address is not None or self._own.host == "localhost"
        named = (place.host, place.port) in self._named or (fixed and place.host == self._own.host)
        return Reach.NAMED if named else Reach.PUBLIC


class _Through(httpx2.AsyncBaseTransport):
    """Send what the SDK sends through our client."""

    def __init__(self, http: Http, written: _Written) -> None:
        self._http = http
        self._written = written

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        stack = AsyncExitStack()
        try:
            step = await _step(request)
            response = await stack.enter_async_context(self._http.ask(step, IDLE_S, self._written.reach(step.place)))
        except (HttpDenied, HttpUnreachable, Denied) as error:
            raise httpx2.ConnectError(str(error)) from error
        except HttpTimeout as error:
            raise httpx2.ReadTimeout(str(error)) from error
        except HttpError as error:
            raise httpx2.ReadError(str(error)) from error
        headers = [(key, text) for key, text in response.headers.items() if key.lower() not in _UNPACKED]
        return httpx2.Response(response.status, headers=headers, stream=_Body(response, stack))


class _Watched(httpx2.AsyncBaseTransport):
    """Notice when a server does not let us in, before the SDK begins a login that nobody sees."""

    def __init__(self, beneath: httpx2.AsyncBaseTransport, access: Access, *, signed: bool) -> None:
        self._beneath = beneath
        self._access = access
        self._signed = signed

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._beneath.handle_async_request(request)
        if request.url != httpx2.URL(self._access.server.settings.url):
            return response
        if response.status_code == 401 and not self._signed:
            self._access.turned_away()
        too_little = extract_field_from_www_auth(response, "error") == "insufficient_scope"
        if too_little and self._access.wants_more(extract_scope_from_www_auth(response) or ""):
            del response.headers["WWW-Authenticate"]
        return response


async def _step(request: httpx2.Request) -> Step:
    headers = {key: text for key, text in request.headers.items() if key.lower() not in _CONNECTION}
    return Step(parse(str(request.url)), request.method, headers, await request.aread())
