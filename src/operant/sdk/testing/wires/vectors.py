"""Vectors of texts: the same for the same text everywhere, and near for texts that share words."""

from __future__ import annotations

import hashlib
import math
import re

_WORD = re.compile(r"\w+")


def vector(text: str, size: int) -> list[float]:
    """Return a vector of length one. Words count most, their pieces of three letters a little."""
    made = [0.0] * size
    for word in _WORD.findall(text.casefold()):
        _add(made, word, 1.0)
        padded = f"^{word}$"
        for at in range(len(padded) - 2):
            _add(made, padded[at : at + 3], 0.3)
    length = math.sqrt(sum(value * value for value in made))
    if not length:
        made[0] = length = 1.0
    return [value / length for value in made]


def _add(made: list[float], piece: str, weight: float) -> None:
    digest = hashlib.blake2b(piece.encode(), digest_size=8).digest()
    made[int.from_bytes(digest[:4], "big") % len(made)] += weight if digest[4] & 1 else -weight
