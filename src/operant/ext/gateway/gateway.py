"""The gateway while it listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from operant.ext.gateway.api import Route
from operant.ext.gateway.entrance import Entrance
from operant.ext.gateway.hub import Hub
from operant.ext.gateway.listener import Crowd, Server, listen, most_connections
from operant.ext.gateway.metrics import Metrics
from operant.ext.gateway.openai.chat import Completions
from operant.ext.gateway.openai.functions import Functions
from operant.ext.gateway.openai.responses import Responses
from operant.ext.gateway.openai.work import Work as OpenAiWork
from operant.ext.gateway.openapi import OpenApi
from operant.ext.gateway.page import Page
from operant.ext.gateway.repeats import Repeats
from operant.ext.gateway.routes.access import Access
from operant.ext.gateway.routes.activity import Activity
from operant.ext.gateway.routes.chat import Chat
from operant.ext.gateway.routes.files import Files
from operant.ext.gateway.routes.models import Models
from operant.ext.gateway.routes.sessions import Sessions
from operant.ext.gateway.routes.system import SystemRoutes
from operant.ext.gateway.routes.usage import UsageRoutes
from operant.ext.gateway.routes.work import Work
from operant.ext.gateway.server import Site
from operant.ext.gateway.sessions import Previews
from operant.ext.gateway.settings import GatewaySettings
from operant.ext.gateway.sockets import Sockets
from operant.ext.gateway.throttle import Throttle
from operant.ext.gateway.tokens import SCOPES, Keyring
from operant.sdk import DAEMON_STARTED, DAEMON_STOPPING, Host, Plain, Principal

SHUTDOWN_S = 2.0

_log = logging.getLogger("operant.gateway")


class Gateway:
    """Everything that is there while the server listens."""

    def __init__(self, host: Host, settings: GatewaySettings, keyring: Keyring) -> None:
        self._host = host
        self._settings = settings
        self._entrance = Entrance(settings, keyring, Throttle(host.clock))
        self._ready = False
        own = Principal(kind="extension", id="gateway", capabilities=SCOPES["admin"])
        self._hub = Hub(lambda: host.client(own))
        self._sockets = Sockets(self._hub)
        self._metrics = Metrics(lambda: self._sockets.count, lambda: self._hub.watching)
        self._crowd = Crowd(most_connections(settings.connections))
        self._site = Site(self._entrance, self._crowd, self._metrics, host)
        self._functions = Functions(host)
        self._readers: list[asyncio.Task[None]] = []
        self._group: asyncio.TaskGroup | None = None
        self._furnish(keyring)
        host.hook(DAEMON_STARTED, self._started)
        host.hook(DAEMON_STOPPING, self._stopping)

    def _furnish(self, keyring: Keyring) -> None:
        host, previews = self._host, Previews()
        routes: list[Route] = [
            *Chat(self._hub).routes(),
            *Sessions(self._hub, previews).routes(),
            *Files(host.blobs, self._settings.upload_mb << 20).routes(),
            *Work().routes(),
            *Models().routes(),
            *UsageRoutes(previews).routes(),
            *SystemRoutes(lambda: self._ready, self._metrics).routes(),
            *Access(self._entrance, keyring).routes(),
        ]
        watch = Activity(self._hub, self._sockets)
        routes += watch.routes()
        routes += self._sockets.routes()
        host.toolbox(self._functions)
        work = OpenAiWork(host, self._hub, self._functions)
        routes += [*Completions(host, work).routes(), *Responses(host, work).routes()]
        document = OpenApi(tuple(routes))
        self._site.add((*routes, *document.routes()), host.client)
        self._site.guard(Repeats(host))
        self._site.show(Page())

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[int]:
        """Listen while the context is open; yield the port. Raises `Conflict` where the port is taken."""
        await self._functions.load()
        runner = web.AppRunner(self._site.application, access_log=None)
        await runner.setup()
        inner = runner.server
        if inner is None:
            raise RuntimeError("aiohttp made no server")
        server = Server(inner, self._crowd)
        listening, port, said = await listen(server, self._settings)
        if said:
            _log.warning("%s", said)
        self._entrance.listening(port)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                yield port
                self._end()
        finally:
            self._ready = False
            listening.close()
            await self._sockets.close()
            server.pre_shutdown()
            await server.shutdown(SHUTDOWN_S)
            await runner.cleanup()

    def _end(self) -> None:
        """Stop reading histories."""
        for reader in self._readers:
            reader.cancel()

    async def _started(self, input: Plain) -> None:
        """Begin to answer: the system is whole now."""
        if self._group is not None:
            self._readers.append(self._group.create_task(self._hub.run()))
        self._ready = True

    async def _stopping(self) -> None:
        """Say that no more messages are taken; those who ask are told so."""
        self._ready = False
