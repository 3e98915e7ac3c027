"""Anthropic's prompt cache: what stands before a marker is kept, and found again by the prefix alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, cast

from operant.sdk.testing.wires.wire import Json, encode

_BACK = 20
"""How many blocks before a marker are searched for what an earlier marker has kept."""


class Caches:
    """Prefixes that a marker has kept. The service's least size for a prefix does not hold here."""

    def __init__(self) -> None:
        self._kept: set[bytes] = set()

    def met(self, body: Json, size: int) -> tuple[int, int]:
        """Return how many tokens a request reads, and how many it writes; remember what its markers keep."""
        hashed, length = hashlib.sha256(encode(body.get("model"))), 0
        prefixes: list[tuple[bytes, int]] = []
        marked: list[int] = []
        for block, marker in _blocks(body):
            raw = encode(block)
            hashed.update(raw)
            length += len(raw)
            prefixes.append((hashed.digest(), length))
            if marker:
                marked.append(len(prefixes) - 1)
        if not marked:
            return 0, 0
        read = max((self._found(prefixes, at) for at in marked), default=0)
        self._kept.update(prefixes[at][0] for at in marked)
        last = min(prefixes[marked[-1]][1], size)
        read = min(read, last)
        return read // 4, last // 4 - read // 4

    def _found(self, prefixes: list[tuple[bytes, int]], at: int) -> int:
        """Return the size of the longest kept prefix that ends at a marker or not far before it."""
        near = reversed(prefixes[max(0, at - _BACK) : at + 1])
        return next((length for digest, length in near if digest in self._kept), 0)


def _blocks(body: Json) -> Iterator[tuple[Any, bool]]:
    """Yield every block without its marker, in the order in which a request is read, and whether it had one."""
    everything = [*_listed(body.get("tools")), *_listed(body.get("system"))]
    for message in body["messages"]:
        everything += [{"role": message["role"], "block": block} for block in _listed(message["content"])]
    for at, one in enumerate(everything):
        outer = cast(Json, one)
        block = cast(Json, outer.get("block", outer))
        marker = bool(block.get("cache_control")) or _inner(block)
        last = at == len(everything) - 1 and bool(body.get("cache_control"))
        bare = {name: value for name, value in block.items() if name != "cache_control"}
        yield {**outer, "block": bare} if "block" in outer else bare, marker or last


def _inner(block: Json) -> bool:
    """Tell whether a block in a tool's result is marked."""
    content = block.get("content")
    return isinstance(content, list) and any(one.get("cache_control") for one in cast("list[Json]", content))


def _listed(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or ())
