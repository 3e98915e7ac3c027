"""The one HTTP client: pooled connections, deadlines, and errors that say what happened.

aiohttp takes 180 ms to import, so it is imported when the first request is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 15.0


class HttpError(Exception):
    """Report a request that got no whole answer; the message is for a person and holds no header."""


class HttpUnreachable(HttpError):
    """Report that no connection came about."""


class HttpTimeout(HttpError):
    """Report that nothing came for too long."""


class HttpCut(HttpError):
    """Report a connection that ended in the middle."""


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
                async for _ in self._response.content.iter_any():
                    continue
        except (TimeoutError, OSError):
            return

    async def text(self, limit: int = 65_536) -> str:
        """Return the beginning of the body as text. Raises `HttpError`."""
        with _translated():
            return (await self._response.content.read(limit)).decode(errors="replace")


class Http:
    """A pool of connections; use it inside `async with`."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Http:
        return self

    async def __aexit__(self, *reason: Any) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], idle_s: float
    ) -> AsyncGenerator[HttpResponse]:
        """Send a body and yield the answer; leaving the context early closes the connection. Raises `HttpError`.

        `idle_s` is how long may pass without a byte.
        """
        import aiohttp

        session = self._pool()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=idle_s)
        with _translated():
            response = await session.post(url, data=body, headers=headers, timeout=timeout, allow_redirects=False)
        try:
            yield HttpResponse(response)
        finally:
            # A whole answer gives its connection back; anything else closes it, so that the server stops working.
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, ttl_dns_cache=60)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
                trust_env=False,
            )
        return self._session


class _translated:  # noqa: N801 - reads as a statement
    """Turn aiohttp's exceptions into ours."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, asyncio.CancelledError | GeneratorExit | HttpError):
            return
        import aiohttp

        if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
            raise HttpTimeout("Nothing came in time.") from error
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
            raise HttpUnreachable(_words(error)) from error
        if isinstance(error, aiohttp.ClientError | OSError):
            raise HttpCut(f"The connection ended ({type(error).__name__}).") from error


def _words(error: BaseException) -> str:
    reason = getattr(error, "os_error", None) or error
    return str(getattr(reason, "strerror", "") or reason) or type(error).__name__
