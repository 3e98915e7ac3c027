"""Server-sent events, decoded as bytes arrive (the event stream of the HTML standard, section 9.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class ServerEvent(NamedTuple):
    """One event; `event` is its type, empty where the server named none."""

    data: str
    event: str = ""


class SseDecoder:
    """Turn pieces of a stream into events; the pieces may be cut anywhere, also inside a character or a CRLF."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []
        self._event = ""
        self._after_cr = False

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Yield the events that are complete with this piece."""
        if self._after_cr and piece[:1] == b"\n":
            piece = piece[1:]
        if piece:
            self._after_cr = piece.endswith(b"\r")
        whole = self._rest + piece
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = whole.split(b"\n")
        for line in lines:
            if line:
                self._field(line.decode(errors="replace"))
            elif self._data:
                yield ServerEvent("\n".join(self._data), self._event)
                self._data, self._event = [], ""
            else:
                self._event = ""

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
