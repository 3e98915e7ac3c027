"""A proxy for programs that are not ours: sandboxed commands and the browser reach the network through it or not.

It speaks HTTP/1.1 as proxies do (`CONNECT`, and absolute addresses for plain http), and dials only what the rules and
the egress allow. A denied name is not even resolved, so that nothing can be told to a name server.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from operant.kit.allowlist import Rules, Verdict
from operant.kit.egress import Denied, Egress, Place, Reach, Unresolved, parse, parse_host
from operant.kit.endpoint import listen
from operant.kit.tunnel import Tunnel

__all__ = ["Limits", "Proxy", "Rules", "Verdict"]

_REQUEST = re.compile(r"([A-Z]{1,20}) (\S+) HTTP/1\.[01]")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_LENGTH = re.compile(r"[0-9]{1,15}")
_HOP = frozenset(("connection", "host", "keep-alive", "te", "trailer", "upgrade", "expect"))
_PIECE = 65_536

_log = logging.getLogger("operant.proxy")


class Limits(NamedTuple):
    """What one proxy takes at most."""

    head_bytes: int = 32_768
    head_s: float = 15.0
    idle_s: float = 120.0
    connections: int = 128
    """Connections at once; one more is told so and closed."""
    bytes: int = 2 * 1024**3
    """Bytes that may pass through one connection."""


class _Refusal(Exception):
    """End a connection with a status and a sentence."""

    def __init__(self, status: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class _Asked(NamedTuple):
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str:
        found = [value for key, value in self.headers if key.lower() == name]
        if len(found) > 1:
            raise _Refusal("400 Bad Request", f"The header {name} came twice.")
        return found[0] if found else ""


class Proxy:
    """Serve with `async with proxy.serving_unix(path)` or `async with proxy.serving_tcp() as port`."""

    def __init__(
        self,
        egress: Egress,
        rules: Rules | None = None,
        *,
        token: str = "",
        on_verdict: Callable[[Verdict], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Ask for `token` as the password of `Proxy-Authorization` unless it is empty; `on_verdict` must not raise."""
        self._egress = egress
        self._rules = rules or Rules()
        self._token = token.encode()
        self._tell = on_verdict or _silent
        self._limits = limits or Limits()
        self._open = 0

    @asynccontextmanager
    async def serving_unix(self, path: Path) -> AsyncGenerator[None]:
        """Serve on a Unix socket that only this user may open; it is gone afterwards."""
        socket = listen(path)
        try:
            async with _Crew(self._connection) as crew:
                server = await asyncio.start_server(crew.take, sock=socket, limit=self._limits.head_bytes)
                with _closing(server):
                    yield
        finally:
            path.unlink(missing_ok=True)  # noqa: ASYNC240 - one system call on a local file

    @asynccontextmanager
    async def serving_tcp(self) -> AsyncGenerator[int]:
        """Serve on a loopback port and yield its number; any user of this machine can reach it, so set a token."""
        async with _Crew(self._connection) as crew:
            server = await asyncio.start_server(crew.take, "127.0.0.1", 0, limit=self._limits.head_bytes)
            with _closing(server):
                yield server.sockets[0].getsockname()[1]

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            await self._serve(reader, writer)
        except _Refusal as refusal:
            with suppress(OSError, TimeoutError):
                await _answer(reader, writer, refusal)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            _log.debug("a connection ended: %s", type(error).__name__)
        finally:
            self._open -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open > self._limits.connections:
            raise _Refusal("503 Service Unavailable", "Too many connections are open at once.")
        asked = await self._asked(reader)
        place = self._place(asked)
        self._authorise(asked, place)
        length = _body_length(asked)
        upstream_reader, upstream = await self._dial(place)
        tunnel = Tunnel(self._limits.idle_s, self._limits.bytes)
        try:
            if asked.method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await tunnel.both((reader, writer), (upstream_reader, upstream))
            else:
                upstream.write(_forwarded(asked, place))
                await tunnel.exchange((reader, writer), (upstream_reader, upstream), length)
        finally:
            upstream.close()

    async def _asked(self, reader: asyncio.StreamReader) -> _Asked:
        try:
            async with asyncio.timeout(self._limits.head_s):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.LimitOverrunError as error:
            raise _Refusal("431 Request Header Fields Too Large", "The head of the request is too long.") from error
        first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        request = _REQUEST.fullmatch(first)
        fields = [_HEADER.fullmatch(line) for line in lines]
        if request is None or not all(fields):
            raise _Refusal("400 Bad Request", "This is not a request to a proxy.")
        return _Asked(request[1], request[2], tuple((one[1], one[2].strip()) for one in fields if one))

    def _place(self, asked: _Asked) -> Place:
        try:
            if asked.method == "CONNECT":
                host, port = parse_host(asked.target)
                return Place("connect", host, port, "")
            return parse(asked.target, ("http",))
        except Denied as error:
            self._tell(Verdict(ascii(asked.target)[1:-1][:253], 0, False, str(error)))
            raise _Refusal("403 Forbidden", str(error)) from error

    def _authorise(self, asked: _Asked, place: Place) -> None:
        if self._token and not hmac.compare_digest(_password(asked.header("proxy-authorization")), self._token):
            self._tell(Verdict(place.host, place.port, False, "The token is missing or wrong."))
            raise _Refusal("407 Proxy Authentication Required", "This proxy asks for a token.")

    async def _dial(self, place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reason = self._rules.refusal(place.host, place.port)
        status = "403 Forbidden"
        addresses: tuple[str, ...] = ()
        if not reason:
            try:
                async with asyncio.timeout(self._limits.head_s):
                    addresses = await self._egress.resolve(place, Reach.PUBLIC)
            except TimeoutError:
                reason, status = f"{place.host} was not found in time.", "502 Bad Gateway"
            except Denied as error:
                reason = str(error)
                status = "502 Bad Gateway" if isinstance(error, Unresolved) else status
        self._tell(Verdict(place.host, place.port, not reason, reason))
        if reason:
            raise _Refusal(status, reason)
        try:
            return await self._egress.open_checked(addresses, place, each_s=self._limits.head_s)
        except OSError as error:
            raise _Refusal("502 Bad Gateway", f"{place.host}:{place.port} cannot be reached.") from error


def _forwarded(asked: _Asked, place: Place) -> bytes:
    """Write the request as the server gets it: its own name as the host, and nothing that was for the proxy."""
    path = place.url.partition("#")[0].split("/", 3)[3]
    host = place.url.split("/", 3)[2]
    own = [f"{name}: {value}" for name, value in asked.headers if _passes(name)]
    return "\r\n".join((f"{asked.method} /{path} HTTP/1.1", f"Host: {host}", *own, "Connection: close", "", "")).encode(
        "latin-1"
    )


def _passes(name: str) -> bool:
    return name.lower() not in _HOP and not name.lower().startswith("proxy-")


def _body_length(asked: _Asked) -> int:
    if asked.method == "CONNECT":
        return 0
    if asked.header("transfer-encoding"):
        raise _Refusal("411 Length Required", "This proxy takes a body only with its length.")
    text = asked.header("content-length") or "0"
    if not _LENGTH.fullmatch(text):
        raise _Refusal("400 Bad Request", "The length of the body is not a number.")
    return int(text)


def _password(header: str) -> bytes:
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return value.strip().encode("latin-1")
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refusal: _Refusal) -> None:
    """Say no in one line, and let the client finish: a socket closed with bytes unread may lose the answer."""
    body = f"{refusal}\n".encode()
    challenge = 'Proxy-Authenticate: Basic realm="operant"\r\n' if refusal.status.startswith("407") else ""
    head = (
        f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n{challenge}Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    writer.write_eof()
    async with asyncio.timeout(1.0):
        for _ in range(16):
            if not await reader.read(_PIECE):
                return


class _Crew:
    """The tasks of the connections: they end when the proxy does."""

    def __init__(self, work: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def __aenter__(self) -> _Crew:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Work at a connection."""
        if self._closed:  # it was accepted in the moment of closing
            writer.close()
            return
        task = self._group.create_task(self._work(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@contextmanager
def _closing(server: asyncio.Server) -> Generator[None]:
    try:
        yield
    finally:
        server.close()


def _silent(verdict: Verdict) -> None:
    return None
