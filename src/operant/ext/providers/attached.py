"""Files on their way to a model: as bytes where it can take them, else in words."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Sequence
from typing import Any

from operant.ext.providers.dialect import named
from operant.sdk import BlobRef, Blobs, Damaged, Facts, NotFound, Part, StoreStopped, Text

PDF = "application/pdf"
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MOST_PICTURE = 3_900_000
"""The smallest limit of the services is 5 MiB of base64; one picture too many would make a session unusable."""
_MOST_PDF = 20_000_000

_log = logging.getLogger("operant.providers")


class Attached:
    """Shape words and files; `words` and `file` are how a protocol writes them."""

    def __init__(
        self, blobs: Blobs, words: Callable[[str], dict[str, Any]], file: Callable[[BlobRef, str], dict[str, Any]]
    ) -> None:
        self._blobs = blobs
        self._words = words
        self._file = file

    async def pieces(self, parts: Sequence[Part], facts: Facts) -> list[dict[str, Any]]:
        """Return the pieces of what was said or brought; those without a word in them are left out."""
        found: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, BlobRef):
                data = await self._data(part) if takes(part, facts) else ""
                found.append(self._file(part, data) if data else self._words(named(part)))
            elif isinstance(part, Text) and part.text.strip():
                found.append(self._words(part.text))
        return found

    async def _data(self, ref: BlobRef) -> str:
        try:
            return base64.b64encode(await self._blobs.get_blob(ref.digest)).decode()
        except (NotFound, Damaged, StoreStopped) as error:
            _log.warning("a file cannot be sent to the model: %s", error.sentence)
            return ""


def takes(ref: BlobRef, facts: Facts) -> bool:
    """Tell whether a model can be sent a file as it is."""
    if ref.media_type in _PICTURES:
        return facts.images and 0 < ref.size <= _MOST_PICTURE
    return ref.media_type == PDF and facts.files and 0 < ref.size <= _MOST_PDF


def has_files(parts: Sequence[Part], facts: Facts) -> bool:
    """Tell whether there is a file among some parts that the model is sent as it is."""
    return any(isinstance(part, BlobRef) and takes(part, facts) for part in parts)
