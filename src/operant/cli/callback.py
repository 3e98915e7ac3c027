"""A login in the person's browser, and the place on this machine that the browser comes back to."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlsplit

import click

from operant.cli.inert import one_line
from operant.cli.output import dim
from operant.kernel.errors import Invalid, Unavailable
from operant.kernel.syscalls import McpCallback, McpLogin, McpServer, McpTest
from operant.kit.show import show

if TYPE_CHECKING:
    from operant.app.connect import Link

WAIT_S = 600.0
_PATH = "/callback"
_PASTED = f"http://127.0.0.1:8976{_PATH}"
"""Where nobody needs to listen: the browser shows the address though it finds nothing there."""
_MOST_HEAD = 16 * 1024
_HEAD_S = 10.0
_PAGE = """<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Operant</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 18px/1.5 system-ui; margin: 20vh auto; max-width: 32rem; padding: 0 1rem }}
</style>
<h1>{0}</h1>
<p>{1}</p>
"""


class Return(NamedTuple):
    """How the browser comes back: to a port (0: a free one), or by a pasted address."""

    port: int
    paste: bool


async def logged_in(link: Link, server: str, way: Return) -> McpServer:
    """Have a person log in; return the server. Raises `Unavailable`, `Invalid`."""
    if way.paste:
        redirect = _PASTED if not way.port else f"http://127.0.0.1:{way.port}{_PATH}"
        address = await link.call(McpLogin(server=server, redirect=redirect))
        return await _answered(link, server, address, None)
    async with _Place.listening(way.port) as place:
        address = await link.call(McpLogin(server=server, redirect=place.redirect))
        place.state = _of(address, "state")
        return await _answered(link, server, address, place)


async def _answered(link: Link, server: str, address: str, place: _Place | None) -> McpServer:
    if not address:
        click.echo(f"{server} wants no login.", err=True)
        return await link.call(McpTest(server=server))
    click.echo(f"Log in at {one_line(urlsplit(address).netloc, 100)}:\n\n{one_line(address, 8_000)}\n", err=True)
    if place is None:
        answer = await _pasted()
    else:
        if not show(address):
            click.echo(dim("Open it in a browser on this machine; --paste is for one elsewhere."), err=True)
        answer = await place.answer()
    return await link.call(McpCallback(server=server, address=answer))


async def _pasted() -> str:
    click.echo("When you have, the browser shows a page that it cannot find. Paste its address here:", err=True)
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        line = _line(sys.stdin.fileno())
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(lambda: typed.done() or typed.set_result(line))

    threading.Thread(target=read, daemon=True).start()  # Ctrl-C must not wait for a line
    line = await typed
    if not line:
        raise Invalid("No address came.", "Paste the whole address, beginning with http.")
    return line


def _line(source: int) -> str:
    """Read a line past Python's own buffers, which a thread that is left behind would hold."""
    data = b""
    while not data.endswith(b"\n") and len(data) < _MOST_HEAD:
        piece = os.read(source, _MOST_HEAD)
        if not piece:
            break
        data += piece
    return data.decode(errors="replace").strip()


class _Place:
    """A port of this machine that takes one answer: that of the login which is under way."""

    def __init__(self) -> None:
        self.redirect = ""
        self.state = ""
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @classmethod
    @asynccontextmanager
    async def listening(cls, port: int) -> AsyncGenerator[_Place]:
        """Listen while the context is open. Raises `Unavailable` for a port that is taken."""
        place = cls()
        try:
            server = await asyncio.start_server(place._visited, "127.0.0.1", port, limit=_MOST_HEAD)
        except OSError as error:
            raise Unavailable(f"Port {port} cannot be used: {error.strerror}.", "Choose another --port.") from error
        place.redirect = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{_PATH}"
        async with server:
            yield place

    async def answer(self) -> str:
        """Wait for the browser. Raises `Unavailable`."""
        try:
            async with asyncio.timeout(WAIT_S):
                return await self._answer
        except TimeoutError as error:
            raise Unavailable("Nobody logged in within ten minutes.", "Say it again.") from error

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                target = await _target(reader)
                status, page = self._taken(target)
                writer.write(_response(status, page))
                await writer.drain()
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # whoever that was, it was no browser that comes back
        finally:
            writer.close()

    def _taken(self, target: str) -> tuple[str, str]:
        mine = urlsplit(target).path == _PATH and self.state and _of(target, "state") == self.state
        if not mine:
            return "404 Not Found", _PAGE.format("Nothing is here", "This is not the login that Operant waits for.")
        if not self._answer.done():
            self._answer.set_result(self.redirect + target[len(_PATH) :])
        if _of(target, "error"):
            return "200 OK", _PAGE.format("The login was refused", "The terminal says more. You can close this page.")
        return "200 OK", _PAGE.format("Operant has your answer", "Go back to the terminal. You can close this page.")


async def _target(reader: asyncio.StreamReader) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
    method, target, _ = head.partition("\r\n")[0].split(" ")
    if method != "GET" or not target.startswith("/"):
        raise ValueError(method)
    return target


def _response(status: str, page: str) -> bytes:
    body = page.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\r\n"
    )
    return head.encode() + body


def _of(address: str, name: str) -> str:
    return parse_qs(urlsplit(address).query).get(name, [""])[-1]
