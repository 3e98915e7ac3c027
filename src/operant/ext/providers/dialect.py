"""What a protocol must be able to do; everything else about a model call is the same for all of them."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from operant.ext.providers.endpoint import Endpoint
from operant.kit.sse import ServerEvent
from operant.sdk import BlobRef, Facts, Message, ModelRequest, Part, Reply, StreamPart, Text, ToolCall

Endpoints = Mapping[str, tuple[Endpoint, str]]
"""Where providers are and which protocol they speak, by name."""
_KEPT = 50_000
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Gathering(Protocol):
    """Put one reply together."""

    done: bool
    """Whether the protocol has said that the reply is whole."""

    def add(self, event: ServerEvent) -> Sequence[StreamPart]:
        """Take an event in and return what it shows. Raises `ModelError`."""
        ...

    def reply(self) -> Reply:
        """Return the whole reply. Raises `ModelError` (`cut`) when the stream ended before it was one."""
        ...


class Dialect(Protocol):
    """One protocol, spoken to one provider."""

    def address(self, model: str) -> str:
        """Return where requests for a model go."""
        ...

    def headers(self) -> dict[str, str]:
        """Return the headers of a request, the key among them."""
        ...

    async def body(self, request: ModelRequest, facts: Facts) -> bytes:
        """Return a request's body; what `facts` say that a model cannot take is put into words.

        Contract: the body for a longer conversation is the earlier one plus a suffix, as far as the protocol lets it.
        """
        ...

    def gathering(self, model: str) -> Gathering:
        """Begin a reply."""
        ...


class Encoded:
    """Pieces of requests that are encoded once: messages are frozen, so the same one has the same bytes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, bool], tuple[Message, bytes]] = {}

    def peek(self, message: Message, images: bool) -> bytes | None:
        """Return a message's bytes where they are known; a long conversation is mostly that."""
        kept = self._kept.get((id(message), images))
        return kept[1] if kept is not None and kept[0] is message else None

    async def of(self, message: Message, images: bool, encode: Callable[[Message], Awaitable[bytes]]) -> bytes:
        """Return a message's bytes; `images` tells whether the model can see any."""
        key = (id(message), images)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is message:
            return kept[1]
        data = await encode(message)
        if len(self._kept) > _KEPT:
            self._kept.clear()
        self._kept[key] = (message, data)
        return data


def apart(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Give every call an id of its own; one that has none gets one that no other step has."""
    taken: set[str] = set()
    found: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            id = part.id or f"call_{secrets.token_hex(6)}"
            while id in taken:
                id += "_"
            taken.add(id)
            part = replace(part, id=id)
        found.append(part)
    return tuple(found)


def id_for(id: str) -> str:
    """Return a call's id as every protocol takes it; one of another provider always becomes the same."""
    return id if _ID.fullmatch(id) else f"call_{hashlib.sha256(id.encode()).hexdigest()[:24]}"


def words_of(parts: Sequence[Part]) -> str:
    """Return the words of some parts; a file is named."""
    words: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            words.append(part.text)
        elif isinstance(part, BlobRef):
            words.append(named(part))
    return "".join(words)


def named(ref: BlobRef) -> str:
    """Say in words which file there is, for a model that cannot take it."""
    return f"[file {ref.name or ref.digest[:12]}, {ref.media_type}, {ref.size} bytes]"


def is_image(ref: BlobRef) -> bool:
    """Tell whether bytes are a picture."""
    return ref.media_type.startswith("image/")
