"""What a protocol must be able to do; everything else about a model call is the same for all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from operant.kit.sse import ServerEvent
from operant.sdk import BlobRef, Facts, Message, ModelRequest, Part, Reply, StreamPart, Text

_KEPT = 50_000


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
