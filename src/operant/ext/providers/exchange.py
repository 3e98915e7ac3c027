"""One question and one answer, for everything at a provider that does not stream."""

from __future__ import annotations

from contextlib import aclosing
from typing import TypeVar

import msgspec

from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.refusals import refusal
from operant.kit.http import Http, HttpCut, HttpError, HttpResponse, HttpTimeout, HttpUnreachable
from operant.sdk import Clock, Json, ModelError

R = TypeVar("R")
IDLE_S = 180.0
_MOST = 64 * 2**20


async def exchanged(http: Http, clock: Clock, endpoint: Endpoint, path: str, body: Json, kind: type[R]) -> R:
    """Post a body and return the answer. Raises `ModelError`."""
    usual = "x-goog-api-key" if ":" in path else "bearer"
    headers = endpoint.authorization(usual)
    try:
        async with http.post(endpoint.address(path), msgspec.json.encode(body), headers, IDLE_S) as response:
            if response.status != 200:
                raise await refusal(response, endpoint, clock)
            data = await _whole(response)
    except HttpUnreachable as error:
        raise ModelError("unreachable", f"{endpoint.name} cannot be reached: {error}") from error
    except HttpTimeout as error:
        raise ModelError("timeout", f"{endpoint.name} did not answer in time.") from error
    except HttpError as error:
        raise ModelError("cut", f"{endpoint.name} broke off: {error}") from error
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise ModelError("server", f"{endpoint.name} answered with something else than was asked for.") from error


async def _whole(response: HttpResponse) -> bytes:
    data = bytearray()
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) > _MOST:
                raise HttpCut(f"the answer is larger than {_MOST:,} bytes")
    return bytes(data)
