"""Where the server listens: the port, who holds it when it is taken, and connections that say nothing."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from operant.ext.gateway.settings import DEFAULT_PORT, GatewaySettings
from operant.sdk import Conflict, Invalid, Unavailable

KEEP_S = 75.0
"""Seconds that a connection stays open for another request."""
HEADERS_S = 10.0
"""Seconds that a connection has to say what it wants."""
MOST_HEAD = 16 * 1024
"""Bytes in which a request must have said what it wants."""
_TRIES = 100

_log = logging.getLogger("operant.gateway")


class _Visitor(RequestHandler):
    """One connection, which is hung up on when it says nothing, or when there are too many."""

    __slots__ = ("_crowd", "_end", "_head", "_patience")

    def __init__(self, crowd: Crowd, manager: Any, **options: Any) -> None:
        super().__init__(manager, **options)
        self._crowd = crowd
        self._head = 0
        self._end = b""
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, for a while on trial."""
        super().connection_made(transport)
        if not self._crowd.enter(self):
            self.hang_up()
            return
        self._patience = asyncio.get_running_loop().call_later(HEADERS_S, self._give_up)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Let it go."""
        self._crowd.leave(self)
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, up to a limit while it is not known what is wanted: nothing beyond it is even parsed."""
        if self._waits() and self._head + len(data) > MOST_HEAD:
            start = self._end + data[: MOST_HEAD - self._head]
            if b"\r\n\r\n" not in start:
                self.hang_up()
                return
        super().data_received(data)
        self._head = self._head + len(data) if self._waits() else 0
        self._end = (self._end + data)[-3:] if self._head else b""

    def _waits(self) -> bool:
        """Tell whether the next request is not here as a whole."""
        return self._waiter is not None and not self._waiter.done()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Answer; from then on there is nothing that this connection must be kept for."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._crowd.rest(self)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Say that something could not be read, and not what it was: there may be a token in it."""
        error = kw.get("exc_info")
        if isinstance(error, ConnectionError):
            _log.debug("a client hung up before it had its answer")
        elif isinstance(error, HttpProcessingError):
            _log.warning("a request that is not HTTP was refused (%s)", type(error).__name__)
        else:
            _log.error(*args, **kw)

    def hang_up(self) -> None:
        """Close the connection, whatever is going on."""
        self.force_close()
        if self.transport is not None:
            self.transport.close()

    def _give_up(self) -> None:
        if self._crowd.is_silent(self):
            self.hang_up()


class Crowd:
    """Who is connected; when there is no room, whoever has been silent longest makes some, then who idles."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._silent: OrderedDict[_Visitor, None] = OrderedDict()
        self._idle: OrderedDict[_Visitor, None] = OrderedDict()
        self._busy: set[_Visitor] = set()

    def enter(self, visitor: _Visitor) -> bool:
        """Let one in; false where everybody who is here is known and has something to do."""
        if len(self._silent) + len(self._idle) + len(self._busy) >= self._most:
            gives_way = self._silent or self._idle
            if not gives_way:
                return False
            oldest, _ = gives_way.popitem(last=False)
            oldest.hang_up()
        self._silent[visitor] = None
        return True

    def leave(self, visitor: _Visitor) -> None:
        """Forget one."""
        self._silent.pop(visitor, None)
        self._idle.pop(visitor, None)
        self._busy.discard(visitor)

    def heard(self, visitor: object) -> None:
        """Note that one has sent a whole request."""
        if isinstance(visitor, _Visitor) and visitor in self._silent:
            del self._silent[visitor]
            self._idle[visitor] = None

    def trust(self, visitor: object) -> None:
        """Note that one who is known has something done: they need not make room."""
        if isinstance(visitor, _Visitor) and visitor in self._idle:
            del self._idle[visitor]
            self._busy.add(visitor)

    def rest(self, visitor: _Visitor) -> None:
        """Note that one has their answer."""
        if visitor in self._busy:
            self._busy.remove(visitor)
            self._idle[visitor] = None

    def is_silent(self, visitor: _Visitor) -> bool:
        """Tell whether one has never sent a whole request."""
        return visitor in self._silent


class Server(web.Server):
    """The server of an application, which hangs up on the silent."""

    def __init__(self, inner: web.Server, crowd: Crowd) -> None:
        super().__init__(inner.request_handler, request_factory=inner.request_factory)
        self._crowd = crowd

    def __call__(self) -> RequestHandler:
        """Make the protocol of one connection."""
        loop = asyncio.get_running_loop()
        # Bodies come as they are: what a client compressed is refused, not unpacked.
        return _Visitor(self._crowd, self, loop=loop, access_log=None, keepalive_timeout=KEEP_S, auto_decompress=False)


def most_connections(wanted: int) -> int:
    """Return how many connections this process can hold, with files to spare for all else."""
    with suppress(ImportError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        need = wanted + 512
        if soft < need:
            soft = need if hard == resource.RLIM_INFINITY else min(need, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(8, min(wanted, soft - 256))
    return wanted


async def listen(
    server: Callable[[], asyncio.BaseProtocol], settings: GatewaySettings
) -> tuple[asyncio.Server, int, str]:
    """Listen; return the server, its port, and what there is to say about the port.

    Raises `Conflict` when the port that was asked for is taken, naming who holds it and one that is free.
    """
    tls = _tls(settings)
    wanted = DEFAULT_PORT if settings.port is None else settings.port
    loop = asyncio.get_running_loop()
    try:
        listening = await loop.create_server(server, settings.host, wanted, ssl=tls, backlog=1024)
        return listening, listening.sockets[0].getsockname()[1], ""
    except OSError as error:
        if error.errno not in (98, 48, 10048):  # EADDRINUSE on Linux, macOS, Windows
            where = f"{settings.host}:{wanted}"
            raise Unavailable(
                f"Nobody can listen on {where}: {error.strerror or error}.", "Set gateway.host and gateway.port."
            ) from error
    held = f"Port {wanted} is held by {holder(wanted) or 'another program'}"
    for port in range(wanted + 1, min(wanted + _TRIES, 65_536)):
        try:
            listening = await loop.create_server(server, settings.host, port, ssl=tls, backlog=1024)
        except OSError:
            continue
        if settings.port is None:
            return listening, port, f"{held}; the page is on {port}."
        listening.close()
        raise Conflict(f"{held}.", f"The next free one is {port}: operant serve --port {port}.")
    raise Conflict(f"{held}, and the {_TRIES} after it are taken too.", "Set gateway.port.")


def holder(port: int) -> str:
    """Name the process that listens on a port, where the system tells."""
    inodes = {inode for table in ("tcp", "tcp6") for inode in _listening(table, port)}
    if not inodes:
        return ""
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _holds(process, inodes):
            name = _text(process / "comm").strip()
            return f"{name} (process {process.name})"
    return ""


def _listening(table: str, port: int) -> set[str]:
    found: set[str] = set()
    for line in _text(Path("/proc/net") / table).splitlines()[1:]:
        words = line.split()
        if len(words) > 9 and words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
            found.add(f"socket:[{words[9]}]")
    return found


def _holds(process: Path, inodes: set[str]) -> bool:
    try:
        handles = list((process / "fd").iterdir())
    except OSError:  # another user's
        return False
    return any(_target(handle) in inodes for handle in handles)


def _target(handle: Path) -> str:
    try:
        return str(handle.readlink())
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _tls(settings: GatewaySettings) -> ssl.SSLContext | None:
    if not settings.tls.certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(Path(settings.tls.certificate).expanduser(), Path(settings.tls.key).expanduser())
    except (OSError, ssl.SSLError) as error:
        raise Invalid(f"The certificate cannot be used: {error}.", "See gateway.tls in operant.yaml.") from error
    return context
