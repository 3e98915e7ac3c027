"""Unpack a body piece by piece, never more than there is room for: a bomb stays packed."""

from __future__ import annotations

import zlib

ENCODINGS = "gzip, deflate"
_GZIP = 16 + zlib.MAX_WBITS


class CannotUnpack(Exception):
    """Report a body that is packed in a way that is broken, or that nobody asked for."""


class Inflate:
    """Unpack what arrives in one encoding; no encoding passes through."""

    def __init__(self, encoding: str) -> None:
        """Raise `CannotUnpack` for an encoding that is not one of `ENCODINGS`."""
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise CannotUnpack("The answer is packed in a way that was not asked for.")
        self._gzip = name.endswith("gzip")
        self._packed = self._gzip or name == "deflate"
        self._stream = zlib.decompressobj(_GZIP)
        self._fresh = True

    def feed(self, piece: bytes, room: int) -> bytes:
        """Return what a piece unpacks to, at most `room` bytes. Raises `CannotUnpack`."""
        if not self._packed:
            return piece[:room]
        try:
            return self._unpacked(piece, room)
        except zlib.error as error:
            raise CannotUnpack("The answer is packed, and broken.") from error

    def _unpacked(self, piece: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        while piece and room > 0:
            if self._fresh:
                self._fresh = False
                self._stream = zlib.decompressobj(_GZIP if self._gzip else _deflate(piece))
            part = self._stream.decompress(piece, room)
            parts.append(part)
            room -= len(part)
            piece = self._stream.unconsumed_tail
            if self._stream.eof:  # gzip may have one more stream behind this one; what follows deflate is rubbish
                piece = self._stream.unused_data if self._gzip else b""
                self._fresh = self._gzip
        return b"".join(parts)


def _deflate(piece: bytes) -> int:
    """Tell the two things that servers call deflate apart by the first byte."""
    return zlib.MAX_WBITS if piece[0] & 0x0F == 8 else -zlib.MAX_WBITS
