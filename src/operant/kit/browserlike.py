"""Requests whose TLS and headers are those of a browser, for sites that answer nobody else (extra `web`).

libcurl follows nothing and resolves nothing here: it is told the addresses that the egress has checked, gets no proxy
from the environment, and the body is cut while it arrives.
"""

from __future__ import annotations

import importlib
import ipaddress
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from operant.kit.egress import CONNECT_S, Denied, Egress, Place
from operant.kit.exchange import Answer, Engine, Get, HttpCut, HttpTimeout, HttpUnreachable, Step, folded
from operant.kit.hops import target

if TYPE_CHECKING:
    from curl_cffi import AsyncCurl, Curl, CurlError

_TIMED_OUT = 28
_NOT_CONNECTED = frozenset((5, 6, 7, 35, 60))


HEADERS = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/142.0.0.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.9",
    "Upgrade-Insecure-Requests": "1",
}
"""What a browser says of itself, for when its TLS cannot be spoken."""


def browserlike(egress: Egress) -> AbstractAsyncContextManager[Engine] | None:
    """Return the engine for one fetch; None where the package is not installed."""
    try:
        importlib.import_module("curl_cffi")
    except ImportError:
        return None
    return _engine(egress)


@asynccontextmanager
async def _engine(egress: Egress) -> AsyncGenerator[Engine]:
    from curl_cffi import AsyncCurl

    # One for each fetch: its connections and its table of names were checked for this reach and for no other.
    multi = AsyncCurl()
    try:
        yield _Browser(egress, multi)
    finally:
        await multi.close()


class _Browser:
    name = "browser"

    def __init__(self, egress: Egress, multi: AsyncCurl) -> None:
        self._egress = egress
        self._multi = multi

    async def send(self, step: Step, request: Get) -> Answer:
        from curl_cffi import Curl, CurlError

        addresses = await self._egress.resolve(step.place, request.reach)
        curl = Curl()
        intake = _Intake(request)
        try:
            _prepare(curl, step, request, addresses)
            _listen(curl, intake)
            try:
                await self._perform(curl)
            except CurlError:
                if not intake.full:
                    raise
            _insist(curl, addresses)
        except CurlError as error:
            raise _ours(error, step.place) from error
        finally:
            curl.close()
        return intake.answer()

    async def _perform(self, curl: Curl) -> None:
        pending = self._multi.add_handle(curl)
        try:
            await pending
        finally:
            if pending.cancelled():
                self._multi.remove_handle(curl)


class _Intake:
    """What arrives: the headers, and as much of the body as may be."""

    def __init__(self, request: Get) -> None:
        self.full = False
        self._limit = request.max_bytes
        self._follows = request.redirects > 0
        self._body = bytearray()
        self._headers: list[tuple[str, str]] = []
        self._status = 0

    def header(self, line: bytes) -> int:
        text = line.decode("utf-8", "surrogateescape").strip()
        if text.startswith("HTTP/"):
            self._headers = []  # an informational answer came before
            self._status = int(text.split(" ", 2)[1])
        elif ":" in text:
            name, _, value = text.partition(":")
            self._headers.append((name, value.strip()))
        return len(line)

    def body(self, piece: bytes) -> int:
        from curl_cffi.curl import CURL_WRITEFUNC_ERROR

        redirect = self._follows and target(self._status, folded(self._headers))
        self._body += piece[: self._limit + 1 - len(self._body)]
        if redirect or len(self._body) > self._limit:
            self.full = True
            return CURL_WRITEFUNC_ERROR
        return len(piece)

    def answer(self) -> Answer:
        headers = folded(self._headers)
        if self._follows and target(self._status, headers):
            return Answer(self._status, headers)
        return Answer(self._status, headers, bytes(self._body[: self._limit]), len(self._body) > self._limit)


def _prepare(curl: Curl, step: Step, request: Get, addresses: tuple[str, ...]) -> None:
    from curl_cffi import CurlHttpVersion, CurlOpt
    from curl_cffi.requests.impersonate import DEFAULT_CHROME

    if curl.impersonate(DEFAULT_CHROME):
        raise HttpUnreachable("The installed curl_cffi cannot look like a browser.")
    options: list[tuple[CurlOpt, Any]] = [
        (CurlOpt.URL, step.place.url.partition("#")[0].encode()),
        (CurlOpt.PROTOCOLS_STR, step.place.scheme.encode()),
        (CurlOpt.HTTP_VERSION, CurlHttpVersion.V2TLS),  # over plain http a browser speaks 1.1
        (CurlOpt.FOLLOWLOCATION, 0),
        (CurlOpt.PROXY, b""),
        (CurlOpt.NOPROXY, b"*"),
        (CurlOpt.ACCEPT_ENCODING, b"gzip, deflate, br, zstd"),
        (CurlOpt.CONNECTTIMEOUT_MS, int(CONNECT_S * 1000)),
        (CurlOpt.TIMEOUT_MS, int(request.total_s * 1000)),
        (CurlOpt.LOW_SPEED_LIMIT, 1),
        (CurlOpt.LOW_SPEED_TIME, max(1, int(request.idle_s))),
        (CurlOpt.CUSTOMREQUEST, step.method.encode()),
        (CurlOpt.HTTPHEADER, [f"{name}: {value}".encode("latin-1") for name, value in step.headers.items()]),
    ]
    if step.place.address is None:
        known = ",".join(f"[{one}]" if ":" in one else one for one in addresses)
        options.append((CurlOpt.RESOLVE, [f"{step.place.host}:{step.place.port}:{known}".encode()]))
    if step.method == "HEAD":
        options.append((CurlOpt.NOBODY, 1))
    if step.body:
        options += [(CurlOpt.POSTFIELDSIZE, len(step.body)), (CurlOpt.POSTFIELDS, step.body)]
    for option, value in options:
        if curl.setopt(option, value):  # an option that is not taken would be a limit that is not there
            raise HttpUnreachable(f"The installed curl_cffi does not know {option.name}.")


def _listen(curl: Curl, intake: _Intake) -> None:
    from curl_cffi import CurlOpt

    curl.setopt(CurlOpt.HEADERFUNCTION, intake.header)
    curl.setopt(CurlOpt.WRITEFUNCTION, intake.body)


def _insist(curl: Curl, addresses: tuple[str, ...]) -> None:
    """Refuse an answer that came from elsewhere than we said, whatever the reason."""
    from curl_cffi import CurlInfo

    found = curl.getinfo(CurlInfo.PRIMARY_IP)
    peer = found.decode() if isinstance(found, bytes) else str(found)
    if ipaddress.ip_address(peer) not in {ipaddress.ip_address(one) for one in addresses}:
        raise Denied("The answer came from an address that was not checked.")


def _ours(error: CurlError, place: Place) -> Exception:
    code = int(error.code)
    if code == _TIMED_OUT:
        return HttpTimeout("Nothing came in time.")
    if code in _NOT_CONNECTED:
        return HttpUnreachable(f"{place.host} cannot be reached (curl {code}).")
    return HttpCut(f"The connection to {place.host} ended (curl {code}).")
