"""Come in and go out: the login of a browser, and tokens for programs."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from msgspec import Meta

from operant.ext.gateway.api import Call, Nothing, Route, reply
from operant.ext.gateway.entrance import Entrance
from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.tokens import BROWSER_DAYS, Keyring
from operant.sdk import Json, Record, TokenAdd, TokenInfo, TokenList, TokenMade, TokenRevoke


class LoginBody(Record):
    """A code from a login link, or a token."""

    code: Annotated[str, Meta(max_length=500)] = ""
    token: Annotated[str, Meta(max_length=500)] = ""


class TokenBody(Record):
    """A new token; `days` from now it is void (0: never)."""

    name: str
    scopes: tuple[str, ...] = ("chat",)
    days: Annotated[int, Meta(ge=0, le=36_500)] = 0


class Access:
    """Answer the routes about who may come in."""

    def __init__(self, entrance: Entrance, keyring: Keyring) -> None:
        self._entrance = entrance
        self._keyring = keyring

    def routes(self) -> list[Route]:
        """Return the routes."""
        tag = "access"
        return [
            Route("POST", "/api/login", self.login, "Let a browser in by a code from `operant open`, which works once.", "open", body=LoginBody, returns=Json),
            Route("POST", "/api/logout", self.logout, "Let this browser out.", tag, returns=Json),
            Route("GET", "/api/me", self.me, "Tell who asks and what they may do.", tag, returns=Json),
            Route("GET", "/api/tokens", self.list, "List tokens, without the tokens themselves.", tag, returns=tuple[TokenInfo, ...]),
            Route("POST", "/api/tokens", self.add, "Make a token; this answer is the only time it can be read.", tag, body=TokenBody, returns=TokenMade, status=201),
            Route("DELETE", "/api/tokens/{name}", self.revoke, "Make a token void at once.", tag, returns=TokenInfo),
        ]  # fmt: skip

    async def login(self, call: Call[Nothing, LoginBody]) -> web.Response:
        """Let a browser in."""
        request, body = call.request, call.body
        if request.headers.get("Origin") is None:
            raise Rejected(403, "Only a browser logs in; programs send `Authorization: Bearer …`.", code="denied")
        if body.token:
            if "admin" not in self._entrance.check(request, body.token).capabilities:
                raise Rejected(403, "A browser may do everything; this token may not.", code="denied")
            code = self._keyring.login_code()
        else:
            code = body.code
        self._entrance.may_try(request)
        token = self._keyring.log_in(code)
        if token is None:
            self._entrance.refuse(request)
        response = reply(request, {"status": "ok"})
        response.set_cookie(
            self._entrance.cookie,
            token,
            max_age=BROWSER_DAYS * 86_400,
            httponly=True,
            secure=self._entrance.is_encrypted(request),
            samesite="Strict",
            path="/",
        )
        return response

    async def logout(self, call: Call[Nothing, None]) -> web.Response:
        """Let a browser out."""
        token = call.request.cookies.get(self._entrance.cookie, "")
        if token:
            self._entrance.let_finish(call.request)
            self._keyring.log_out(token)
            self._entrance.forget(token)
        response = reply(call.request, {"status": "ok"})
        response.del_cookie(self._entrance.cookie, path="/")
        return response

    async def me(self, call: Call[Nothing, None]) -> Json:
        """Tell who asks."""
        principal = call.principal
        return {"kind": principal.kind, "id": principal.id, "capabilities": sorted(principal.capabilities)}

    async def list(self, call: Call[Nothing, None]) -> tuple[TokenInfo, ...]:
        """List tokens."""
        return await call.client.call(TokenList())

    async def add(self, call: Call[Nothing, TokenBody]) -> TokenMade:
        """Make a token."""
        body = call.body
        return await call.client.call(TokenAdd(name=body.name, scopes=body.scopes, days=body.days))

    async def revoke(self, call: Call[Nothing, None]) -> TokenInfo:
        """Make a token void."""
        self._entrance.let_finish(call.request)
        return await call.client.call(TokenRevoke(name=call.path("name")))
