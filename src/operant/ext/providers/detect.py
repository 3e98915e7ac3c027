"""Find a model by ourselves: a key in the environment, a server on this machine, else the offline model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

import msgspec

from operant.ext.providers.offline import MODEL
from operant.ext.providers.presets import PRESETS, Preset
from operant.kit.egress import Denied, Egress, Place, Reach, parse
from operant.sdk import Record

PROBE_S = 0.3
_MOST = 1_000_000
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Found(Record):
    """The chain of models that were found, and why in one sentence."""

    chain: tuple[str, ...]
    sentence: str
    local: tuple[Preset, ...] = ()


async def detect(variable: Callable[[str], str | None], egress: Egress, known: Sequence[Preset] = PRESETS) -> Found:
    """Look for keys first, then for servers on this machine."""
    keyed = [(one, key) for one in known if one.model and (key := key_of(one, variable))]
    if keyed:
        chain = tuple(f"{one.name}/{one.model}" for one, _ in keyed)
        return Found(chain=chain, sentence=f"Using {chain[0]}, because {keyed[0][1]} is set.")
    servers = await _local(egress, [one for one in known if not one.key])
    if servers:
        chain = tuple(f"{one.name}/{one.model}" for one in servers)
        where = servers[0].base_url.removesuffix("/v1")
        return Found(chain=chain, sentence=f"Using {chain[0]}, which answers at {where}.", local=servers)
    sentence = "Using the offline model, which has no intelligence: no key is set and no model server answers here."
    return Found(chain=(MODEL,), sentence=sentence)


def key_of(one: Preset, variable: Callable[[str], str | None]) -> str:
    """Return the variable that holds a provider's key, where there is all that it needs; else nothing."""
    if one.place and not variable(one.place):
        return ""
    return next((name for name in (one.key, *one.also) if name and variable(name)), "")


async def _local(egress: Egress, known: Sequence[Preset]) -> tuple[Preset, ...]:
    found = await asyncio.gather(*(_probe(egress, one) for one in known))
    return tuple(one for one in found if one is not None)


async def _probe(egress: Egress, known: Preset) -> Preset | None:
    """Ask a server which models it has; None when it does not answer as a model server does."""
    try:
        async with asyncio.timeout(PROBE_S):
            answer = await _get(egress, parse(known.base_url, ("http",)), "/v1/models")
        models = msgspec.json.decode(answer, type=_Listing).data
    except (
        Denied,
        OSError,
        TimeoutError,
        asyncio.IncompleteReadError,
        asyncio.LimitOverrunError,
        msgspec.MsgspecError,
        ValueError,
    ):
        return None
    chat = [model.id for model in models if "embed" not in model.id]
    return msgspec.structs.replace(known, model=chat[0]) if chat else None


class _Listed(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Listed]


async def _get(egress: Egress, place: Place, path: str) -> bytes:
    """Make one small request without the HTTP client, whose import would take longer than this."""
    reader, writer = await egress.open(place, Reach.NAMED)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {place.host}\r\nAccept: application/json\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(min(int(length[1]), _MOST)) if length else await reader.read(_MOST)
    finally:
        writer.close()
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise ValueError("no 200")
    return body
