"""OAuth 2.1 by the SDK: who we are to a server, as a program or by a person's login, kept over restarts.

It imports the SDK, so it is imported when a server over HTTP is connected to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from operant.ext.mcp.access import Access, Login
from operant.ext.mcp.declared import Declared
from operant.ext.mcp.settings import OAuthSettings
from operant.sdk import Json

Show = Callable[[str], Awaitable[None]]
Answer = Callable[[], Awaitable[AuthorizationCodeResult]]


def credentials(access: Access) -> OAuthClientProvider | None:
    """Return what requests are signed with, if anything."""
    if access.by_program:
        return _of_program(access.server)
    login = access.login
    return _of_login(access, login) if login is not None and login.tokens is not None else None


def _of_program(server: Declared) -> OAuthClientProvider:
    """Sign as a program, with credentials that the owner was given; only their issuer gets to see them."""
    chosen = server.settings.oauth or OAuthSettings()
    return ClientCredentialsOAuthProvider(
        server_url=server.settings.url,
        storage=_Remembered(),
        client_id=chosen.client_id,
        client_secret=chosen.client_secret.reveal() if chosen.client_secret else "",
        scope=chosen.scope or None,
        issuer=chosen.issuer or None,
    )


def _of_login(access: Access, login: Login) -> OAuthClientProvider:
    """Sign with a login that is kept; where it does not do, say so."""

    async def show(address: str) -> None:
        access.give_up()

    async def answer() -> AuthorizationCodeResult:
        raise AssertionError("nobody was asked")

    places: list[str] = (login.client or {}).get("redirect_uris") or ["http://127.0.0.1/callback"]
    return _made(access, _Storage(access, places[0], fresh=False), show, answer)


def of_visit(access: Access, redirect: str, show: Show, answer: Answer) -> OAuthClientProvider:
    """Log in: `show` gets the address for the person's browser, `answer` gives what it brought back."""
    storage = _Storage(access, redirect, fresh=True)

    async def shown(address: str) -> None:
        whole = _with_scopes(address, _wanted(access))
        storage.provider.context.client_metadata.scope = _query(whole).get("scope")
        await show(whole)

    return _made(access, storage, shown, answer)


def result(answer: str) -> AuthorizationCodeResult:
    """Read what the browser brought back."""
    found = _query(answer)
    return AuthorizationCodeResult(code=found.get("code", ""), state=found.get("state"), iss=found.get("iss"))


def _made(access: Access, storage: _Storage, show: Show, answer: Answer) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(client_name="Operant", redirect_uris=[AnyUrl(storage.redirect)])
    storage.provider = OAuthClientProvider(access.server.settings.url, metadata, storage, show, answer)
    return storage.provider


class _Remembered:
    """Tokens for as long as we run; new ones are had with the same credentials."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class _Storage:
    """A login on the shelf. A `fresh` one starts without tokens, and what was kept stays until there are new ones.

    The SDK stores tokens and registration only. When they expire, and where they are renewed, it would have forgotten
    after a restart, so both are put back where it looks for them.
    """

    provider: OAuthClientProvider

    def __init__(self, access: Access, redirect: str, *, fresh: bool) -> None:
        self.redirect = redirect
        self._access = access
        self._fresh = fresh
        self._client: Json | None = None

    async def get_tokens(self) -> OAuthToken | None:
        login = self._access.login
        if self._fresh or login is None or login.tokens is None:
            return None
        context = self.provider.context
        context.token_expiry_time = login.expires_at or None
        if login.authority is not None and context.oauth_metadata is None:
            context.oauth_metadata = OAuthMetadata.model_validate(login.authority)
        return OAuthToken.model_validate(login.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.provider.context
        self._fresh = False
        login = Login(
            origin=self._access.server.origin,
            tokens=_plain(tokens),
            expires_at=context.token_expiry_time or 0.0,
            client=_plain(context.client_info),
            authority=_plain(context.oauth_metadata),
        )
        self._access.logins.keep(self._access.server, login)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        chosen = self._access.server.settings.oauth
        if chosen is not None and chosen.client_id:
            return self._registered_by_hand(chosen)
        login = self._access.login
        if login is None or login.client is None or self.redirect not in login.client.get("redirect_uris", ()):
            return None
        return OAuthClientInformationFull.model_validate(login.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep nothing yet: a registration is worth something together with its tokens."""

    def _registered_by_hand(self, chosen: OAuthSettings) -> OAuthClientInformationFull:
        return OAuthClientInformationFull(
            client_id=chosen.client_id,
            client_secret=chosen.client_secret.reveal() if chosen.client_secret else None,
            token_endpoint_auth_method="client_secret_basic" if chosen.client_secret else "none",
            redirect_uris=[AnyUrl(self.redirect)],
            issuer=chosen.issuer or None,
        )


def _plain(model: Any) -> Json | None:
    return None if model is None else msgspec.json.decode(model.model_dump_json(exclude_none=True), type=dict[str, Any])


def _wanted(access: Access) -> list[str]:
    """Return the scopes that a login asks for whatever the server proposes."""
    chosen, login = access.server.settings.oauth, access.login
    more = f"{(login.tokens or {}).get('scope') or ''} {login.more}" if login is not None and login.more else ""
    return f"{chosen.scope if chosen is not None else ''} {more}".split()


def _with_scopes(address: str, wanted: list[str]) -> str:
    if not wanted:
        return address
    parts, query = urlsplit(address), _query(address)
    query["scope"] = " ".join(dict.fromkeys([*query.get("scope", "").split(), *wanted]))
    return urlunsplit(parts._replace(query=urlencode(query)))


def _query(address: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(address).query).items()}
