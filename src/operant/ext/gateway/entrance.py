"""The door: where a request is from and who sends it, asked of every one, before anything else."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from aiohttp import web

from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.settings import GatewaySettings, is_loopback
from operant.ext.gateway.throttle import Throttle
from operant.ext.gateway.tokens import Keyring
from operant.sdk import Principal

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN = frozenset({"/", "/healthz", "/readyz", "/api/login", "/favicon.ico"})
"""Paths that answer without a token; they tell nothing."""
OPEN_BELOW = "/page/"
_IN_QUERY = frozenset({"token", "access_token", "api_key", "apikey", "key", "auth", "authorization", "code"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

_log = logging.getLogger("operant.gateway")


class Entrance:
    """Let in who may come in."""

    def __init__(self, settings: GatewaySettings, keyring: Keyring, throttle: Throttle) -> None:
        self._settings = settings
        self._keyring = keyring
        self._throttle = throttle
        self._known: set[str] = set()
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

    def admit(self, request: web.Request) -> Principal | None:
        """Return who sends a request; None on a path that is open. Raises `Rejected`."""
        self._check_place(request)
        if request.path in OPEN or request.path.startswith(OPEN_BELOW):
            return None
        for name in request.query:
            if name.lower() in _IN_QUERY:
                raise Rejected(
                    400, "A token does not belong into an address.", "Send `Authorization: Bearer …`.", code="invalid"
                )
        return self._identify(request)

    def client_address(self, request: web.Request) -> str:
        """Return the address of who asks; a proxy is believed only when it is named."""
        peer = request.remote or ""
        if peer not in self._settings.proxies:
            return peer
        hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",") if hop.strip()]
        return next((hop for hop in reversed(hops) if hop not in self._settings.proxies), peer)

    def is_encrypted(self, request: web.Request) -> bool:
        """Tell whether the browser's connection is encrypted."""
        return self._seen_scheme(request) == "https"

    def _check_place(self, request: web.Request) -> None:
        """Refuse what a foreign page or a foreign name brings here."""
        host = self._seen_host(request)
        if host not in self._hosts:
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
        header = request.headers.get("Authorization")
        cookie = request.cookies.get(self.cookie)
        token = _bearer(header) if header is not None else cookie
        if not token:
            raise Rejected(
                401,
                "This needs a token.",
                "Send `Authorization: Bearer …` (the owner's is in state/token), or `operant open` for a browser.",
                code="unauthenticated",
                headers={"WWW-Authenticate": 'Bearer realm="operant"'},
            )
        if header is None and request.method not in _SAFE and request.headers.get("Origin") is None:
            raise Rejected(403, "A browser says which page it is on; this request does not.", code="denied")
        return self.check(request, token)

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


def _bearer(header: str) -> str:
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
