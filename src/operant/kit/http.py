"""The one HTTP client: pooled connections, deadlines, limits, and errors that say what happened.

Every address is judged by the egress, which also resolves every name that is dialled. aiohttp takes 180 ms to import,
so it is imported when the first request is made.
"""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from operant.kit.browserlike import HEADERS, browserlike
from operant.kit.egress import CONNECT_S, Denied, Egress, Reach, Unresolved, parse
from operant.kit.exchange import (
    Answer,
    Engine,
    Fetched,
    Get,
    HttpCut,
    HttpDenied,
    HttpError,
    HttpTimeout,
    HttpUnreachable,
    Step,
    folded,
)
from operant.kit.hops import Trail, target
from operant.kit.inflate import ENCODINGS, CannotUnpack, Inflate

if TYPE_CHECKING:
    import aiohttp
    import yarl
    from aiohttp.abc import ResolveResult

__all__ = [
    "CONNECT_S",
    "Fetched",
    "Get",
    "Http",
    "HttpCut",
    "HttpDenied",
    "HttpError",
    "HttpResponse",
    "HttpTimeout",
    "HttpUnreachable",
]

_MOST_KNOWN = 256


_AT_ONCE = 1 << 20


class HttpResponse:
    """A status, headers, and a body that is read as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in the pieces in which it arrives. Raises `HttpError`."""
        content = self._response.content
        while not content.at_eof():
            with _translated():
                piece = await content.readany()
            if piece:
                yield piece

    async def drain(self, seconds: float) -> None:
        """Read on to the end of the body, but not for long: only a body read whole gives its connection back."""
        if self._response.content.at_eof():
            return
        try:
            async with asyncio.timeout(seconds):
                async for _ in self.pieces():
                    continue
        except (TimeoutError, HttpError):
            return

    async def text(self, limit: int = 65_536) -> str:
        """Return the beginning of the body as text. Raises `HttpError`."""
        with _translated():
            return (await self._response.content.read(limit)).decode(errors="replace")


class Http:
    """A pool of connections; use it inside `async with`."""

    name = "plain"

    def __init__(self, egress: Egress | None = None) -> None:
        self.egress = egress or Egress()
        # A connection is as good as the check that it was made under, so that each reach has connections of its own.
        self._pools: dict[Reach, aiohttp.ClientSession] = {}
        self._known: dict[tuple[str, Reach], yarl.URL] = {}

    async def __aenter__(self) -> Http:
        return self

    async def __aexit__(self, *reason: Any) -> None:
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.close()

    @asynccontextmanager
    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], idle_s: float, reach: Reach = Reach.NAMED
    ) -> AsyncGenerator[HttpResponse]:
        """Send a body and yield the answer; leaving the context early closes the connection. Raises `HttpError`.

        `idle_s` is how long may pass without a byte. Redirects are not followed.
        """
        with _translated():
            where = self._known.get((url, reach)) or self._judged(url, reach)
            sending = self._pool(reach).post(
                where, data=_sent(body), headers=headers, timeout=_patience(idle_s), allow_redirects=False
            )
        async with _opened(sending) as response:
            yield response

    @asynccontextmanager
    async def ask(self, step: Step, idle_s: float, reach: Reach = Reach.NAMED) -> AsyncGenerator[HttpResponse]:
        """Send one request of any method and yield the answer, otherwise as `post`. Raises `HttpError`."""
        with _translated():
            where = self._judged(step.place.url, reach)
            sending = self._pool(reach).request(
                step.method, where, data=_sent(step.body), headers=step.headers,
                timeout=_patience(idle_s), allow_redirects=False,
            )  # fmt: skip
        async with _opened(sending) as response:
            yield response

    async def fetch(self, request: Get) -> Fetched:
        """Make a request of a tool within all its limits, judging every hop. Raises `HttpError`."""
        try:
            with _translated():
                async with asyncio.timeout(request.total_s):
                    return await self._follow(request)
        except HttpTimeout as error:
            raise HttpTimeout(f"{_host(request.url)} did not answer in time.") from error

    async def _follow(self, request: Get) -> Fetched:
        trail = Trail(request)
        async with self._engine(request) as engine:
            answer = await engine.send(trail.step, request)
            while trail.follow(answer):
                answer = await engine.send(trail.step, request)
        return Fetched(
            url=trail.step.place.url,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            hops=trail.hops,
            truncated=answer.truncated,
            engine=engine.name,
        )

    @asynccontextmanager
    async def _engine(self, request: Get) -> AsyncGenerator[Engine]:
        browser = browserlike(self.egress) if request.browser else None
        if browser is None:
            yield self
            return
        async with browser as engine:
            yield engine

    async def send(self, step: Step, request: Get) -> Answer:
        """Send one step of a fetch through the pool: this is the engine that is always there."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=request.idle_s)
        usual = HEADERS if request.browser else {"Accept": "*/*"}
        own = {name.lower() for name in step.headers}
        headers = {name: value for name, value in usual.items() if name.lower() not in own}
        response = await self._pool(request.reach).request(
            step.method,
            self._judged(step.place.url, request.reach),
            data=_sent(step.body),
            headers={**headers, **step.headers, "Accept-Encoding": ENCODINGS},
            timeout=timeout,
            allow_redirects=False,
            auto_decompress=False,
        )
        try:
            return await _answer(response, request)
        finally:
            response.close()

    def _judged(self, url: str, reach: Reach) -> yarl.URL:
        """Read and judge an address; a name in it is judged when it is resolved. Raises `Denied`."""
        import yarl

        place = parse(url)
        self.egress.check_name(place.host)
        ip = place.address
        if ip is not None:
            self.egress.check_address(place.host, ip, reach)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        known = self._known[url, reach] = yarl.URL(place.url, encoded=True)
        return known

    def _pool(self, reach: Reach) -> aiohttp.ClientSession:
        if reach not in self._pools:
            import aiohttp

            connector = aiohttp.TCPConnector(
                limit=0, keepalive_timeout=60, ttl_dns_cache=60, resolver=_resolver(self.egress, reach)
            )
            self._pools[reach] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
                trust_env=False,
            )
        return self._pools[reach]


def _sent(body: bytes | None) -> bytes | io.BytesIO | None:
    """Return a body as the client wants it: a large one in pieces, so that nothing else waits for it to be written."""
    return io.BytesIO(body) if body and len(body) > _AT_ONCE else body or None


def _patience(idle_s: float) -> aiohttp.ClientTimeout:
    import aiohttp

    return aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=idle_s)


@asynccontextmanager
async def _opened(sending: Awaitable[aiohttp.ClientResponse]) -> AsyncGenerator[HttpResponse]:
    with _translated():
        response = await sending
    try:
        yield HttpResponse(response)
    finally:
        # A whole answer gives its connection back; anything else closes it, so that the server stops working.
        if response.content.at_eof():
            response.release()
        else:
            response.close()


async def _answer(response: aiohttp.ClientResponse, request: Get) -> Answer:
    """Read an answer, unpacked, up to its limit; what a redirect says is nobody's concern."""
    headers = folded(response.headers.items())
    if request.redirects and target(response.status, headers):
        return Answer(response.status, headers)
    inflate = Inflate(headers.get("content-encoding", ""))
    body = bytearray()
    packed = 0
    async for piece in response.content.iter_any():
        packed += len(piece)
        body += inflate.feed(piece, request.max_bytes + 1 - len(body))
        if max(len(body), packed) > request.max_bytes:
            break
    truncated = max(len(body), packed) > request.max_bytes
    return Answer(response.status, headers, bytes(body[: request.max_bytes]), truncated)


def _resolver(egress: Egress, reach: Reach) -> Any:
    """Make aiohttp's resolver of the egress: what it dials is what was checked, and there is no other."""
    from aiohttp.abc import AbstractResolver

    class Checked(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            place = parse(f"http://{host}:{port}")
            return [_resolved(host, one, port) for one in await egress.resolve(place, reach)]

        async def close(self) -> None:
            return None

    return Checked()


def _resolved(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return {
        "hostname": host,
        "host": address,
        "port": port,
        "family": family,
        "proto": 0,
        "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    }


class _translated:  # noqa: N801 - reads as a statement
    """Turn aiohttp's exceptions into ours."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, asyncio.CancelledError | GeneratorExit | HttpError):
            return
        if isinstance(error, Unresolved):
            raise HttpUnreachable(str(error)) from error
        if isinstance(error, Denied):
            raise HttpDenied(str(error)) from error
        import aiohttp

        if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
            raise HttpTimeout("Nothing came in time.") from error
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
            raise HttpUnreachable(_words(error)) from error
        if isinstance(error, CannotUnpack):
            raise HttpCut(str(error)) from error
        if isinstance(error, aiohttp.ClientError | OSError):
            raise HttpCut(f"The connection ended ({type(error).__name__}).") from error


def _words(error: BaseException) -> str:
    reason = getattr(error, "os_error", None) or error
    return str(getattr(reason, "strerror", "") or reason) or type(error).__name__


def _host(url: str) -> str:
    try:
        return parse(url).host
    except Denied:
        return "It"
