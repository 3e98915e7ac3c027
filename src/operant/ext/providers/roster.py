"""What servers themselves say that they have."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import msgspec

from operant.kit.egress import Reach
from operant.kit.exchange import MEGABYTE, Get, HttpError
from operant.kit.http import Http
from operant.sdk import Clock

_log = logging.getLogger("operant.providers")
_KEPT_S = 600.0
_ASKED_S = 5.0
_PREFIX = "models/"


class _Listed(msgspec.Struct):
    id: str


class _Google(msgspec.Struct):
    name: str


class _Answer(msgspec.Struct):
    data: list[_Listed] = []
    models: list[_Google] = []


class Roster:
    """Ask servers for their lists of models, and keep what they said for a while.

    `requests` says how each provider is asked; it is not called before somebody searches.
    """

    def __init__(self, requests: Callable[[], Mapping[str, Get]], http: Http, clock: Clock) -> None:
        self._requests = requests
        self._http = http
        self._clock = clock
        self._kept: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def names(self) -> tuple[str, ...]:
        """Return `provider/model` for all that answer in time; of the others nothing is known."""
        requests = self._requests()
        found = await asyncio.gather(*(self._of(name, request) for name, request in requests.items()))
        return tuple(f"{name}/{model}" for name, models in zip(requests, found, strict=True) for model in models)

    async def _of(self, name: str, request: Get) -> tuple[str, ...]:
        now = self._clock.monotonic()
        kept = self._kept.get(name)
        if kept is not None and kept[0] > now:
            return kept[1]
        models = await self._asked(name, request)
        if models:
            self._kept[name] = (now + _KEPT_S, models)
        return models

    async def _asked(self, name: str, request: Get) -> tuple[str, ...]:
        try:
            answer = await self._http.fetch(request)
        except HttpError as error:
            _log.info("%s does not say which models it has: %s", name, error)
            return ()
        return names_in(answer.body) if answer.status == 200 else ()


def listing(address: str, headers: Mapping[str, str]) -> Get:
    """Return the request for a server's list."""
    return Get(url=address, headers=headers, max_bytes=8 * MEGABYTE, total_s=_ASKED_S, redirects=0, reach=Reach.NAMED)


def names_in(body: bytes) -> tuple[str, ...]:
    """Return the names in a list, in whichever shape it is; nothing where it is none."""
    for shape in (_Answer, list[_Listed]):
        try:
            found = msgspec.json.decode(body, type=shape)
        except msgspec.MsgspecError:
            continue
        if isinstance(found, list):
            return tuple(one.id for one in found)
        return tuple(one.id for one in found.data) + tuple(one.name.removeprefix(_PREFIX) for one in found.models)
    return ()
