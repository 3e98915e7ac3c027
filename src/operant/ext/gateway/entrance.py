"""The door: where a request is from and who sends it, asked of every one, before anything else."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import NoReturn

from aiohttp import web

from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.settings import GatewaySettings, is_loopback
from operant.ext.gateway.throttle import Throttle
from operant.ext.gateway.tokens import Keyring, hash_of
from operant.sdk import Principal

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN = frozenset({"/", "/healthz", "/readyz", "/api/login", "/favicon.ico"})
"""Paths that answer without a token; they tell nothing."""
OPEN_BELOW = "/page/"
_IN_QUERY = frozenset({"token", "access_token", "api_key", "apikey", "key", "auth", "authorization", "code"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

_HELD = web.RequestKey("held", str)
"""The token of a request that was let in."""

_log = logging.getLogger("operant.gateway")


class Entrance:
    """Let in who may come in."""

    def __init__(self, settings: GatewaySettings, keyring: Keyring, throttle: Throttle) -> None:
        self._settings = settings
        self._keyring = keyring
        self._throttle = throttle
        self._known: set[str] = set()
        self._inside: dict[str, list[web.Request]] = {}
        keyring.when_void(self._throw_out)
        self._hosts: frozenset[str] = frozenset()
        self._scheme = "https" if settings.tls.certificate else "http"
        self.cookie = "operant"

    def listening(self, port: int) -> None:
        """Learn the port, once there is one: it is part of every name by which we are called."""
        names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(self._settings.host) else set[str]()
        host = self._settings.host
        if not is_loopback(host):
            names |= {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
        usual = "443" if self._scheme == "https" else "80"
        full = {f"{name}:{port}" for name in names}
        for name in self._settings.names:
            full |= {name.lower(), f"{name.lower()}:{port}", f"{name.lower()}:{usual}"}
        self._hosts = frozenset(full | (names if str(port) == usual else set()))
        self.cookie = f"operant_{port}"

    # ------------------------------------------------------------------ every request

    def admit(self, request: web.Request, free: bool = False) -> Principal | None:
        """Return who sends a request; None on a path that is open, or `free` this once. Raises `Rejected`."""
        self._check_place(request)
        for name in request.query:
            if name.lower() in _IN_QUERY:
                raise Rejected(
                    400, "A token does not belong into an address.", "Send `Authorization: Bearer …`.", code="invalid"
                )
        if free or request.path in OPEN or request.path.startswith(OPEN_BELOW):
            return None
        return self._identify(request)

    @contextmanager
    def inside(self, request: web.Request) -> Generator[None]:
        """Hang up on a request that is still at work when its token is revoked or ends."""
        token = request.get(_HELD)
        if token is None:
            yield
            return
        key = hash_of(token)
        left = self._keyring.seconds_left(token)
        end = None if left is None else asyncio.get_running_loop().call_later(left, _hang_up, request)
        self._inside.setdefault(key, []).append(request)
        try:
            yield
        finally:
            self.let_finish(request)
            if end is not None:
                end.cancel()

    def let_finish(self, request: web.Request) -> None:
        """Let a request end as it will, because it is the one that makes its own token void."""
        key = hash_of(request.get(_HELD, ""))
        left = [one for one in self._inside.pop(key, ()) if one is not request]
        if left:
            self._inside[key] = left

    def _throw_out(self, key: str) -> None:
        for request in self._inside.pop(key, ()):
            _hang_up(request)

    def client_address(self, request: web.Request) -> str:
        """Return the address of who asks; a proxy is believed only when it is named."""
        peer = request.remote or ""
        if peer not in self._settings.proxies:
            return peer
        lines = ",".join(request.headers.getall("X-Forwarded-For", ()))  # some proxies add a line of their own
        hops = [hop.strip() for hop in lines.split(",") if hop.strip()]
        return next((hop for hop in reversed(hops) if hop not in self._settings.proxies), peer)

    def is_encrypted(self, request: web.Request) -> bool:
        """Tell whether the browser's connection is encrypted."""
        return self._seen_scheme(request) == "https"

    def called_as(self, request: web.Request) -> str:
        """Return the address by which a client calls us, as `http://name:port`."""
        return f"{self._seen_scheme(request)}://{self._seen_host(request)}"

    def _check_place(self, request: web.Request) -> None:
        """Refuse what a foreign page or a foreign name brings here."""
        host = self._seen_host(request)
        if host not in self._hosts or not request.raw_path.startswith("/"):  # others are asked for with `http://…`
            self._note(request, f"called by the name {host[:80]!r}")
            raise Rejected(421, "This is not the address of this server.", "Add the name to `gateway.names`.")
        origin = request.headers.get("Origin")
        if origin is not None and not self._is_ours(origin, f"{self._seen_scheme(request)}://{host}"):
            self._note(request, f"from the page {origin[:80]!r}")
            raise Rejected(403, "Other pages may not come in.", "Add the origin to `gateway.origins`.", code="denied")
        if origin is None and request.method not in _SAFE and request.path in OPEN:
            raise Rejected(403, "A browser says which page it is on; this request does not.", code="denied")
        foreign = request.headers.get("Sec-Fetch-Site", "") in ("cross-site", "same-site")
        if foreign and origin is None and request.path not in OPEN and not request.path.startswith(OPEN_BELOW):
            self._note(request, "from another page")
            raise Rejected(403, "Other pages may not come in.", code="denied")

    def _is_ours(self, origin: str, own: str) -> bool:
        return origin.lower() == own or origin in self._settings.origins

    def _seen_host(self, request: web.Request) -> str:
        host = request.headers.get("Host", "")
        if request.remote in self._settings.proxies:
            host = request.headers.get("X-Forwarded-Host", host)
        return host.lower()

    def _seen_scheme(self, request: web.Request) -> str:
        if request.remote in self._settings.proxies:
            return request.headers.get("X-Forwarded-Proto", self._scheme)
        return self._scheme

    # ------------------------------------------------------------------ who

    def _identify(self, request: web.Request) -> Principal:
        headers = request.headers.getall("Authorization", ())
        token = _only([_bearer(header) for header in headers]) if headers else _only(self._cookies(request))
        if not token:
            raise Rejected(
                401,
                "This needs a token.",
                "Send `Authorization: Bearer …` (the owner's is in state/token), or `operant open` for a browser.",
                code="unauthenticated",
                headers={"WWW-Authenticate": 'Bearer realm="operant"'},
            )
        if not headers and request.method not in _SAFE and request.headers.get("Origin") is None:
            raise Rejected(403, "A browser says which page it is on; this request does not.", code="denied")
        principal = self.check(request, token)
        request[_HELD] = token
        return principal

    def _cookies(self, request: web.Request) -> list[str]:
        sent = "; ".join(request.headers.getall("Cookie", ()))
        return re.findall(rf"(?:^|;)\s*{self.cookie}\s*=\s*\"?([^;\"\s]*)", sent)

    def check(self, request: web.Request, token: str) -> Principal:
        """Return who holds a token. Raises `Rejected`, and slows down who guesses."""
        address = self.client_address(request)
        wait = 0 if token in self._known else self._throttle.wait_s(address)
        principal = None if wait else self._keyring.principal(token)
        if principal is None:
            self.refuse(request, wait)
        self._known.add(token)
        return principal

    def may_try(self, request: web.Request) -> None:
        """Raise `Rejected` for an address that has tried too often."""
        if self._throttle.wait_s(self.client_address(request)):
            self.refuse(request)

    def refuse(self, request: web.Request, wait: int = 0) -> NoReturn:
        """Say no to a wrong token or code, and count it."""
        address = self.client_address(request)
        wait = wait or self._throttle.wait_s(address)
        if wait:
            raise Rejected(
                429,
                "Too many wrong tokens.",
                f"Try again in {wait} s.",
                code="throttled",
                headers={"Retry-After": str(wait)},
            )
        self._throttle.failed(address)
        self._note(request, "with a wrong token")
        raise Rejected(
            401,
            "This token is not valid.",
            "`operant token list` shows those that are, `operant open` lets a browser in.",
            code="unauthenticated",
            headers={"WWW-Authenticate": 'Bearer realm="operant", error="invalid_token"'},
        )

    def forget(self, token: str) -> None:
        """Stop knowing a token that was given up."""
        self._known.discard(token)

    def _note(self, request: web.Request, why: str) -> None:
        _log.warning("refused %s %s from %s: %s", request.method, request.path[:200], request.remote, why)


def _only(tokens: list[str]) -> str:
    """Return the one token there is; of several, nobody can say which is meant."""
    return tokens[0] if len(tokens) == 1 else ""


def _hang_up(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()


def _bearer(header: str) -> str:
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
