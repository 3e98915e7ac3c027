"""The server: every request through one door, to its route, and out with the same manners."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from operant.ext.gateway.api import PRINCIPAL, Route, opener, supervised
from operant.ext.gateway.entrance import Entrance
from operant.ext.gateway.listener import Crowd
from operant.ext.gateway.metrics import Metrics
from operant.ext.gateway.mounted import find_mount, handler_of, is_open
from operant.ext.gateway.page import Page
from operant.ext.gateway.repeats import Repeats
from operant.sdk import Client, Host, Principal

MANNERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""What every response says to browsers."""

_log = logging.getLogger("operant.gateway")

ClientOf = Callable[[Principal], Client]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """The application: routes and the page behind one door."""

    def __init__(self, entrance: Entrance, crowd: Crowd, metrics: Metrics, host: Host) -> None:
        self._entrance = entrance
        self._crowd = crowd
        self._metrics = metrics
        self._clock = host.clock
        self._mounts = lambda: host.mounts
        self.application = web.Application(middlewares=[self._door], client_max_size=1 << 24)
        self.application.on_response_prepare.append(_mind)

    def add(self, routes: Iterable[Route], client_of: ClientOf) -> None:
        """Add routes."""
        for route in routes:
            # A path inside a workspace has slashes; everything else is one segment.
            path = route.path.replace("/files/{path}", "/files/{path:.+}")
            self.application.router.add_route(route.method, path, opener(route, client_of), name=None)

    def guard(self, repeats: Repeats) -> None:
        """Answer repeated requests as the first time."""
        self.application.middlewares.append(repeats.middleware)

    def show(self, page: Page) -> None:
        """Serve the page."""
        self.application.router.add_get("/", page.index)
        self.application.router.add_get("/favicon.ico", page.icon)
        self.application.router.add_get("/page/{path:.+}", page.file)

    @web.middleware
    async def _door(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask every request who sends it, and count it."""
        self._crowd.heard(request.protocol)
        began = self._clock.monotonic()
        mount = find_mount(request, self._mounts())
        if mount is not None:
            handler = handler_of(mount, self._entrance.called_as)

        async def work(one: web.Request) -> web.StreamResponse:
            principal = self._entrance.admit(one, free=is_open(one, mount))
            if principal is None:
                return await handler(one)
            one[PRINCIPAL] = principal
            self._crowd.trust(one.protocol)
            with self._entrance.inside(one):
                return await handler(one)

        response = await supervised(request, work)
        if request.path.startswith(("/api/", "/v1/")) and not response.prepared:
            response.headers.setdefault("Cache-Control", "no-store")
        resource = request.match_info.route.resource
        name = resource.canonical if resource is not None else mount.path if mount is not None else "(none)"
        self._metrics.count(request.method, name, response.status, self._clock.monotonic() - began)
        return response


async def _mind(request: web.Request, response: web.StreamResponse) -> None:
    for header, value in MANNERS.items():
        response.headers.setdefault(header, value)
    response.headers["Server"] = "operant"
