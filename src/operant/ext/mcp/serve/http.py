"""The server at `/mcp` of the gateway: the SDK speaks ASGI, a mount speaks in records, and this is between them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from operant.ext.mcp.settings import ServeSettings
from operant.sdk import Host, HttpRequest, HttpResponse, Missing, Mount, Principal, Unavailable

PATH = "/mcp"
_WHO = "operant.principal"
_MOST_WAITING = 16

_log = logging.getLogger("operant.mcp")

App = Callable[[Any, Any, Any], Awaitable[None]]


class Endpoint:
    """Answer requests; the SDK is imported, and its server made, with the first of them."""

    def __init__(self, host: Host, settings: ServeSettings) -> None:
        self._host = host
        self._settings = settings
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._app: asyncio.Future[App] | None = None
        self._open = False

    def mount(self) -> Mount:
        """Return the path."""
        methods = frozenset({"GET", "POST", "DELETE"})
        return Mount(PATH, self.answer, "Be a server of the Model Context Protocol.", methods, "tool.read")

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[None]:
        """Answer while the context is open."""
        async with self._group:
            self._open = True
            try:
                yield
            finally:
                self._open = False
                for task in self._tasks:
                    task.cancel()

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Let the SDK answer a request. Raises `Missing` where it is not installed."""
        if find_spec("mcp") is None:
            raise Missing("MCP needs a package that is not there.", "pip install 'operant[mcp]'")
        if not self._open:
            raise Unavailable("Operant is stopping.", "Ask again in a moment.")
        exchange = Exchange(request)
        task = self._begin(self._carry_out(exchange))
        return await exchange.response(task)

    async def _carry_out(self, exchange: Exchange) -> None:
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            self._begin(self._hold(self._app))
        app = await asyncio.shield(self._app)
        serving = app(exchange.scope, exchange.receive, exchange.send)
        done = (await asyncio.gather(serving, return_exceptions=True))[0]
        if isinstance(done, Exception):
            _log.error("an MCP request failed", exc_info=done)
        await exchange.end()

    async def _hold(self, made: asyncio.Future[App]) -> None:
        """Keep the SDK's server for as long as we live."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from operant.ext.mcp.serve.offer import make_server

        server = make_server(self._client_of, self._settings, self._host.ids.new, self._host.blobs)
        # Without sessions every request stands for itself, and carries who sends it.
        manager = StreamableHTTPSessionManager(server, stateless=True)
        async with manager.run():
            made.set_result(manager.handle_request)
            await asyncio.Event().wait()

    def _client_of(self, context: Any) -> Any:
        principal: Principal = context.request.scope[_WHO]
        return self._host.client(principal)

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class Exchange:
    """One request and its answer, in ASGI's words."""

    def __init__(self, request: HttpRequest) -> None:
        self._body = request.body
        self._gone = asyncio.Event()
        self._sent: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(_MOST_WAITING)
        self._asked = False
        scheme, _, place = request.base.partition("://")
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": scheme,
            "path": request.path,
            "raw_path": request.path.encode(),
            "root_path": "",
            "query_string": request.query.encode(),
            "headers": [(name.encode("latin-1"), text.encode("latin-1", "replace")) for name, text in request.headers],
            "client": None,
            "server": (place, None),
            "state": {},
            _WHO: request.principal,
        }

    async def receive(self) -> dict[str, Any]:
        """Hand over the request, and after it that the client has gone, once it has."""
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Take a piece of the answer; who sends faster than the client reads has to wait."""
        await self._sent.put(dict(message))

    async def end(self) -> None:
        """Note that no more will come."""
        self._gone.set()
        await self._sent.put(None)

    async def response(self, task: asyncio.Task[None]) -> HttpResponse:
        """Return the answer as soon as it begins; its pieces follow."""
        start = await self._sent.get()
        if start is None:
            raise Unavailable("The request was not answered.", "`operant logs` may say why.")
        headers = tuple((name.decode("latin-1"), text.decode("latin-1")) for name, text in start.get("headers", ()))
        first = await self._sent.get()
        if first is None or not first.get("more_body"):
            return HttpResponse(start["status"], headers, bytes((first or {}).get("body", b"")))
        return HttpResponse(start["status"], headers, self._pieces(bytes(first.get("body", b"")), task))

    async def _pieces(self, first: bytes, task: asyncio.Task[None]) -> AsyncGenerator[bytes]:
        piece, more = first, True
        try:
            while True:
                if piece:
                    yield piece
                message = await self._sent.get() if more else None
                if message is None:
                    return
                piece, more = bytes(message.get("body", b"")), bool(message.get("more_body"))
        finally:
            self._gone.set()
            task.cancel()
