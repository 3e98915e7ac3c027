"""Redirects: where they may lead, and what may go along."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urljoin

from operant.kit.egress import Denied, Place, parse
from operant.kit.exchange import Answer, Get, HttpDenied, Step

REDIRECTS = frozenset((301, 302, 303, 307, 308))

HARMLESS = frozenset(
    (
        "accept", "accept-language", "cache-control", "dnt", "if-modified-since", "if-none-match", "pragma", "range",
        "upgrade-insecure-requests", "user-agent",
    )
)  # fmt: skip
"""Headers that any origin may see. Everything else may be a credential: nobody can list all names of keys."""

OURS = frozenset(
    ("accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
     "transfer-encoding", "upgrade")
)  # fmt: skip
"""Headers that belong to the connection; a caller's are left out."""

_METHOD = re.compile(r"[A-Z]{1,20}")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Trail:
    """The way of one request through its redirects; every hop is read and judged anew."""

    def __init__(self, request: Get) -> None:
        """Raise `Denied` for an address, `HttpDenied` for a method or header that cannot be sent."""
        if not _METHOD.fullmatch(request.method) or request.method in ("CONNECT", "TRACE"):
            raise HttpDenied("This method cannot be sent.")
        self.step = Step(parse(request.url), request.method, _sendable(request.headers), request.body)
        self.hops: tuple[str, ...] = ()
        self._left = request.redirects
        self._trusted = frozenset(parse(one).origin for one in request.origins)

    def follow(self, answer: Answer) -> bool:
        """Go on to where an answer points; False when it is the last one. Raises `Denied` and `HttpDenied`."""
        location = target(answer.status, answer.headers)
        if not location or (not self._left and not self.hops):
            return False
        if not self._left:
            raise HttpDenied(f"{self.step.place.host} redirects too often: {len(self.hops)} redirects were followed.")
        self._left -= 1
        here = self.step
        place = _joined(here.place, location)
        method, body = _onward(here.method, here.body, answer.status)
        headers = self._headers(here, place, dropped=here.body != body)
        if body and not self._same(here.place, place):
            raise HttpDenied(f"{here.place.host} redirects to {place.host}, which must not get what was sent.")
        self.hops = (*self.hops, here.place.url)
        self.step = Step(place, method, headers, body)
        return True

    def _headers(self, here: Step, place: Place, *, dropped: bool) -> Mapping[str, str]:
        headers = {
            name: value for name, value in here.headers.items() if not (dropped and name.lower().startswith("content-"))
        }
        harmless = {name: value for name, value in headers.items() if name.lower() in HARMLESS}
        if here.place.scheme == "https" and place.scheme == "http" and len(headers) > len(harmless):
            raise HttpDenied(f"{here.place.host} redirects to unencrypted http, which must not get the credentials.")
        return headers if self._same(here.place, place) else harmless

    def _same(self, here: Place, there: Place) -> bool:
        return here.origin == there.origin or there.origin in self._trusted


def target(status: int, headers: Mapping[str, str]) -> str:
    """Return where an answer redirects to; empty when it does not."""
    return headers.get("location", "").strip() if status in REDIRECTS else ""


def _joined(place: Place, location: str) -> Place:
    """Read a location, which may be relative and, as servers do it, have spaces in it."""
    try:
        return parse(urljoin(place.url, location.replace(" ", "%20")))
    except ValueError as error:
        raise Denied("The redirect leads to an address that cannot be read.") from error


def _onward(method: str, body: bytes, status: int) -> tuple[str, bytes]:
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        return "GET", b""
    return method, body


def _sendable(headers: Mapping[str, str]) -> Mapping[str, str]:
    sent: dict[str, str] = {}
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise HttpDenied("A header has characters in it that cannot be sent.")
        if name.lower() not in OURS and not name.lower().startswith("proxy-"):
            sent[name] = value
    return sent
