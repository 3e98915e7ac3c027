"""Idempotency-Key: a POST that is sent again has the answer of the first time, also after a restart.

Messages need no help: their key is part of the inbox, so they are taken once even when the process dies between taking
and answering. For everything else the answer is kept for a day once it is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from operant.ext.gateway.api import BODY, MOST_BODY, PRINCIPAL, read
from operant.ext.gateway.problem import Rejected
from operant.sdk import Host, PutValue, Record

NAMESPACE = "gateway.repeats"
KEPT_S = 86_400
_LONGEST = 200
_OWN = ("/api/chat/", "/v1/", "/api/login", "/api/tokens")
"""Paths that mind the key themselves, or must not: a new token is told once, and kept nowhere."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Kept(Record):
    """An answer that was given."""

    status: int
    body: bytes
    kind: str
    print: str


class Repeats:
    """Remember answers by key."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._busy: set[str] = set()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a repeat from what is kept."""
        key = request.headers.get("Idempotency-Key", "").strip()
        who = request.get(PRINCIPAL)
        if not key or who is None or request.method != "POST" or request.path.startswith(_OWN):
            return await handler(request)
        if len(key) > _LONGEST:
            raise Rejected(400, f"An Idempotency-Key has at most {_LONGEST} characters.", code="invalid")
        if request.content_type == "application/json":
            request[BODY] = await read(request, MOST_BODY)
        place = _digest(who.kind, who.id, request.path, key)
        if place in self._busy:
            raise Rejected(409, "This request is at work already.", "Wait for its answer.", code="conflict")
        self._busy.add(place)
        try:
            return await self._once(request, handler, place)
        finally:
            self._busy.discard(place)

    async def _once(self, request: web.Request, handler: Handler, place: str) -> web.StreamResponse:
        fingerprint = _digest(request.path_qs, request.get(BODY, b"").decode(errors="replace"))
        found = await self._host.kept.value(NAMESPACE, place)
        if found is not None:
            kept = msgspec.json.decode(found, type=_Kept)
            if kept.print != fingerprint:
                raise Rejected(
                    409, "This Idempotency-Key was used for another request.", "Use a fresh key.", code="conflict"
                )
            return web.Response(
                status=kept.status, body=kept.body, content_type=kept.kind, headers={"Idempotency-Replayed": "true"}
            )
        response = await handler(request)
        if isinstance(response, web.Response) and isinstance(response.body, bytes):
            kept = _Kept(status=response.status, body=response.body, kind=response.content_type, print=fingerprint)
            until = self._host.clock.now() + KEPT_S * 1_000_000
            value = msgspec.json.encode(kept)
            await self._host.kept.write(PutValue(namespace=NAMESPACE, key=place, value=value, expires=until))
        return response


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()
