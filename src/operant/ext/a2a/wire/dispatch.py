"""Pass requests of the gateway on to the SDK's JSON-RPC dispatcher, and its answers back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, MutableMapping
from contextlib import aclosing
from typing import Any, cast

import msgspec
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.errors import ContentTypeNotSupportedError
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request

from operant.ext.a2a.incoming import Caller
from operant.sdk import HttpRequest, HttpResponse

_CALLER = "operant.caller"


class _Contexts(DefaultServerCallContextBuilder):
    """Tell the operations who calls: the gateway knows, nothing in the message does."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state["caller"] = request.scope[_CALLER]
        return context


class Wire:
    """One dispatcher for all agents; it keeps nothing between requests."""

    def __init__(self, handler: RequestHandler) -> None:
        self._dispatcher = JsonRpcDispatcher(handler, context_builder=_Contexts(), enable_v0_3_compat=True)

    async def answer(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        """Answer one request."""
        if request.header("content-type").partition(";")[0].strip().lower() != "application/json":
            error = ContentTypeNotSupportedError("A request is JSON: send it as application/json.")
            return _said(200, msgspec.json.encode(build_error_response(None, error)))
        scope = {
            "type": "http",
            "method": request.method,
            "path": request.path,
            "query_string": request.query.encode(),
            "headers": [(key.encode("latin-1"), value.encode("latin-1", "replace")) for key, value in request.headers],
            _CALLER: caller,
        }

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        response = await self._dispatcher.handle_requests(Request(scope, receive))
        if isinstance(response, EventSourceResponse):
            headers = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"))
            return HttpResponse(headers=headers, body=_events(response))
        return _said(response.status_code, bytes(response.body))


def _said(status: int, body: bytes) -> HttpResponse:
    return HttpResponse(status=status, headers=(("Content-Type", "application/json"),), body=body)


async def _events(response: EventSourceResponse) -> AsyncGenerator[bytes]:
    """Write events as the standard has them; the gateway says that it is still there in between."""
    pieces: AsyncGenerator[dict[str, str]] = cast(Any, response).body_iterator
    async with aclosing(pieces):
        async for piece in pieces:
            name = f"event: {piece['event']}\n" if "event" in piece else ""
            data = "".join(f"data: {line}\n" for line in piece["data"].splitlines())
            yield f"{name}{data}\n".encode()
