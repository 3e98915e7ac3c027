"""A server that wants a login, and the authorization server that gives it, both made with the official SDK.

They are at two ports, as they are in the world: where tokens are renewed is not where the server is.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from tests.ext.mcp.peer import server

SCOPE = "notes"


class Authority(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Gives everybody who asks a login at once, unless it `denies`; tokens live for `life` seconds."""

    def __init__(self) -> None:
        self.life: int | None = 3600
        self.denies = False
        self.renewed = 0
        self.issuer = ""
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self._codes: dict[str, AuthorizationCode] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.denies:
            raise AuthorizeError("access_denied", "Not \x1b[31myou.")
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._issued(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        self.renewed += 1
        return self._issued(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    def _issued(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        held = {"client_id": client, "scopes": scopes, "resource": resource}
        access, refresh = f"ACCESS-{secrets.token_hex(8)}", f"REFRESH-{secrets.token_hex(8)}"
        ends = None if self.life is None else int(time.time()) + self.life
        self.access[access] = AccessToken(token=access, expires_at=ends, **held)
        self.refresh[refresh] = RefreshToken(token=refresh, **held)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.life, scope=" ".join(scopes))


class _Within(uvicorn.Server):
    """A server within the tests, which leaves their signals alone: others ask its handler whether the end has come."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def guarded(authority: Authority, made: Server[Any] | None = None, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """Run both, and yield the address of the server; `host` is what it calls the authorization server's."""
    here, there = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    url, issuer = _at(here), _at(there).replace("127.0.0.1", host)
    authority.issuer = issuer
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(f"{url}/mcp"),
        required_scopes=[SCOPE],
        validate_token_resource=True,
    )
    mine = (made or server()).streamable_http_app(auth=auth, token_verifier=authority)
    options = ClientRegistrationOptions(enabled=True, valid_scopes=[SCOPE, "more"], default_scopes=[SCOPE])
    theirs = Starlette(routes=create_auth_routes(authority, AnyHttpUrl(issuer), None, options))
    servers = [
        _Within(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
        for app in (mine, theirs)
    ]
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for listening in (here, there):
            stack.callback(listening.close)
        for one, listening in zip(servers, (here, there), strict=True):
            group.create_task(one.serve(sockets=[listening]))
        try:
            yield f"{url}/mcp"
        finally:
            for one in servers:
                one.should_exit = True


def _at(listening: socket.socket) -> str:
    return f"http://127.0.0.1:{listening.getsockname()[1]}"
