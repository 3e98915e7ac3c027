"""Paths that other extensions answer, behind the same door as our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

from aiohttp import WSCloseCode, WSMsgType, web

from operant.ext.gateway.api import MOST_BODY, PRINCIPAL, read
from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.streams import SILENCE_S
from operant.sdk import Denied, HttpRequest, HttpResponse, Mount, Principal, Talk, allowed

_HELD = frozenset({"authorization", "cookie", "proxy-authorization"})
"""What let the client in is for the door alone."""
_OURS = frozenset({"content-length", "transfer-encoding", "connection", "server", "set-cookie"})
"""What an answer says about the connection is for us to say."""

ALIVE_S = 20.0
"""Seconds after which a silent WebSocket is asked whether it is there."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def find_mount(request: web.Request, mounts: tuple[Mount, ...]) -> Mount | None:
    """Return the mount that answers a request; our own routes come first, whatever anybody mounts."""
    missing = request.match_info.http_exception
    if missing is None or missing.status != 404:
        return None
    path = request.rel_url.raw_path
    return next((one for one in mounts if path == one.path or path.startswith(one.path + "/")), None)


def is_open(request: web.Request, mount: Mount | None) -> bool:
    """Tell whether a mount answers this request without a token."""
    return mount is not None and mount.open and request.method in ("GET", "HEAD")


def handler_of(mount: Mount, called_as: Callable[[web.Request], str]) -> Handler:
    """Make aiohttp's handler of a mount; `called_as` says how the client called us."""

    async def handler(request: web.Request) -> web.StreamResponse:
        principal = request.get(PRINCIPAL) or Principal(kind="client", id="nobody")
        if request.method not in mount.methods:
            takes = ", ".join(sorted(mount.methods))
            hint = {"Allow": takes}
            raise Rejected(405, f"{request.method} is not for this path.", f"It takes {takes}.", headers=hint)
        if not is_open(request, mount) and not allowed(principal, mount.capability):
            raise Denied(f"This token may not use {mount.path}.", f"It needs {mount.capability!r}.")
        asked = HttpRequest(
            method=request.method,
            base=called_as(request),
            path=request.path,
            below=request.path[len(mount.path) :],
            query=request.raw_path.partition("?")[2],
            headers=tuple((key.lower(), text) for key, text in request.headers.items() if key.lower() not in _HELD),
            body=await read(request, MOST_BODY) if request.body_exists else b"",
            principal=principal,
        )
        if mount.talk is not None and request.headers.get("Upgrade", "").lower() == "websocket":
            return await _talk(request, mount.talk, asked, mount.longest)
        return await _send(request, await mount.answer(asked))

    return handler


async def _talk(request: web.Request, talk: Talk, asked: HttpRequest, longest: int) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(heartbeat=ALIVE_S, max_msg_size=longest, compress=False)
    await socket.prepare(request)
    await talk(asked, _Frames(socket))
    await socket.close()
    return socket


class _Frames:
    """A WebSocket as an extension has it."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> str | None:
        """Return the next text; whatever else comes is the end."""
        message = await self._socket.receive()
        return message.data if message.type is WSMsgType.TEXT else None

    async def send(self, text: str) -> None:
        """Send a text."""
        if not self._socket.closed:
            with suppress(ConnectionError):
                await self._socket.send_str(text)

    async def close(self, reason: str) -> None:
        """Hang up."""
        await self._socket.close(code=WSCloseCode.POLICY_VIOLATION, message=reason.encode()[:120])


async def _send(request: web.Request, answered: HttpResponse) -> web.StreamResponse:
    headers = [(key, value) for key, value in answered.headers if key.lower() not in _OURS]
    if isinstance(answered.body, bytes):
        whole = web.Response(status=answered.status, body=answered.body)
        _fill(whole, headers)
        return whole
    response = web.StreamResponse(status=answered.status)
    _fill(response, headers)
    async with aclosing(answered.body) as pieces:
        await response.prepare(request)
        await _pour(response, pieces)
    await response.write_eof()
    return response


def _fill(response: web.StreamResponse, headers: list[tuple[str, str]]) -> None:
    for key, value in headers:
        if key.lower() == "content-type":  # aiohttp sets one of its own
            response.headers[key] = value
        else:
            response.headers.add(key, value)


async def _pour(response: web.StreamResponse, pieces: AsyncGenerator[bytes]) -> None:
    """Send pieces as they come; into silent events goes a comment, by which we learn that a client has gone."""
    events = response.headers.get("Content-Type", "").startswith("text/event-stream")
    gone = False
    try:
        async with asyncio.TaskGroup() as group:
            alive = group.create_task(_keep_alive(response)) if events else None
            async for piece in pieces:
                await response.write(piece)
            if alive is not None:
                alive.cancel()
    except* ConnectionError:
        gone = True
    if gone:
        raise ConnectionResetError("The client has gone.")


async def _keep_alive(response: web.StreamResponse) -> None:
    while True:
        await asyncio.sleep(SILENCE_S)
        await response.write(b": still here\n\n")
