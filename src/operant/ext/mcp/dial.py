"""The way to servers over HTTP: the SDK's client, dialling through ours, so that the egress judges every address.

It imports the SDK, so it is imported when a server over HTTP is connected to.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client

from operant.ext.mcp.declared import Declared
from operant.kit.egress import Denied, parse
from operant.kit.exchange import Step
from operant.kit.http import Http, HttpDenied, HttpError, HttpResponse, HttpTimeout, HttpUnreachable
from operant.sdk import Host

MOST_BODY = 16 * 1024 * 1024
"""Bytes of one answer that is not a stream of events."""
IDLE_S = 300.0
_CONNECTION = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding"})
_UNPACKED = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@asynccontextmanager
async def dialled(server: Declared, host: Host) -> AsyncGenerator[Any]:
    """Yield the two streams that the SDK wants, over HTTP."""
    async with (
        client_of(server, host) as client,
        streamable_http_client(server.settings.url, http_client=client) as streams,
    ):
        yield streams


def client_of(server: Declared, host: Host) -> httpx2.AsyncClient:
    """Make the SDK's HTTP client over ours, with the server's headers and credentials."""
    headers = {name: one.reveal() for name, one in server.settings.headers.items()}
    return httpx2.AsyncClient(
        transport=_Through(host.http), headers=headers, auth=_auth(server), timeout=httpx2.Timeout(30.0, read=IDLE_S)
    )


def _auth(server: Declared) -> Any:
    if server.settings.oauth is None:
        return None
    chosen = server.settings.oauth
    return ClientCredentialsOAuthProvider(
        server_url=server.settings.url,
        storage=_Remembered(),
        client_id=chosen.client_id,
        client_secret=chosen.client_secret.reveal() if chosen.client_secret else "",
        scope=chosen.scope or None,
    )


class _Remembered:
    """Tokens for as long as we run; new ones are had with the same credentials."""

    def __init__(self) -> None:
        self._tokens: Any = None
        self._client: Any = None

    async def get_tokens(self) -> Any:
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> Any:
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        self._client = client_info


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


class _Through(httpx2.AsyncBaseTransport):
    """Send what the SDK sends through our client."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        stack = AsyncExitStack()
        try:
            response = await stack.enter_async_context(self._http.ask(await _step(request), IDLE_S))
        except (HttpDenied, HttpUnreachable, Denied) as error:
            raise httpx2.ConnectError(str(error)) from error
        except HttpTimeout as error:
            raise httpx2.ReadTimeout(str(error)) from error
        except HttpError as error:
            raise httpx2.ReadError(str(error)) from error
        headers = [(key, text) for key, text in response.headers.items() if key.lower() not in _UNPACKED]
        return httpx2.Response(response.status, headers=headers, stream=_Body(response, stack))


async def _step(request: httpx2.Request) -> Step:
    headers = {key: text for key, text in request.headers.items() if key.lower() not in _CONNECTION}
    return Step(parse(str(request.url)), request.method, headers, await request.aread())
