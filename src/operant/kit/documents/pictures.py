"""Read pictures, made small enough for a model."""

from __future__ import annotations

import importlib.util
import io
import warnings
from typing import TYPE_CHECKING, BinaryIO

from operant.kit.documents.request import Answer, CannotRead

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST_SIDE = 1568
MOST_BYTES = 3_500_000
"""What stays below 5 MB as base64, the least that providers take."""
_MOST_PIXELS = 100_000_000
_QUALITIES = (90, 80, 65, 50, 35)
_FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_NEEDS = "Pillow scales it: pip install 'operant[files]'."
_JPEG_SIZES = frozenset((*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)))


def read_picture(file: BinaryIO) -> Answer:
    """Return a picture, scaled where it is large. Raises `CannotRead`."""
    data = file.read()
    found = dimensions(data)
    if found is None:
        raise CannotRead("It begins as a picture does and then is none.")
    media_type, width, height = found
    note = f"{media_type.removeprefix('image/').upper()}, {width:,}×{height:,} pixels, {len(data):,} bytes"  # noqa: RUF001
    if max(width, height) <= LONGEST_SIDE and len(data) <= MOST_BYTES:
        return Answer(kind="image", body=data, media_type=media_type, note=note)
    if width * height > _MOST_PIXELS:
        raise CannotRead(f"It is too large to be looked at: {note}.")
    if importlib.util.find_spec("PIL") is None:
        raise CannotRead(f"It is too large to be shown as it is ({note}). {_NEEDS}")
    made, media_type, size = _scaled(data)
    said = f"{note}; shown as {size[0]:,}×{size[1]:,}"  # noqa: RUF001
    return Answer(kind="image", body=made, media_type=media_type, note=said)


def _scaled(data: bytes) -> tuple[bytes, str, tuple[int, int]]:
    """Return a picture's bytes within the limits, their media type, and the new size."""
    from PIL import Image, ImageOps

    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS
    try:
        with Image.open(io.BytesIO(data), formats=tuple(_FORMATS)) as opened:
            opened.draft("RGB", (2 * LONGEST_SIDE, 2 * LONGEST_SIDE))
            picture = ImageOps.exif_transpose(opened)
            picture = picture.convert("RGBA" if _sees_through(picture) else "RGB")
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise CannotRead(f"It is damaged: {str(error)[:200]}.") from error
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    made, media_type = _within(picture)
    return made, media_type, picture.size


def _sees_through(picture: Image) -> bool:
    return picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info


def _within(picture: Image) -> tuple[bytes, str]:
    """Write a picture without loss if that is small enough, else as JPEG, as good as it can be."""
    made = io.BytesIO()
    picture.save(made, "PNG")
    if made.tell() <= MOST_BYTES // 3:
        return made.getvalue(), "image/png"
    flat = picture.convert("RGB")
    for quality in _QUALITIES:
        made = io.BytesIO()
        flat.save(made, "JPEG", quality=quality)
        if made.tell() <= MOST_BYTES:
            break
    return made.getvalue(), "image/jpeg"


def dimensions(data: bytes) -> tuple[str, int, int] | None:
    """Return the media type, width and height of a picture, from its first bytes."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR" and len(data) >= 24:
        return "image/png", int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data[:4] == b"GIF8" and len(data) >= 10:
        return "image/gif", int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return _jpeg(data) if data[:2] == b"\xff\xd8" else None


def _webp(data: bytes) -> tuple[str, int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
    elif kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":
        width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (26, 28))
    else:
        return None
    return "image/webp", width, height


def _jpeg(data: bytes) -> tuple[str, int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _JPEG_SIZES:
            height, width = (int.from_bytes(data[here : here + 2], "big") for here in (at + 5, at + 7))
            return "image/jpeg", width, height
        bare = marker in (0xFF, 0x01) or 0xD0 <= marker <= 0xD9
        at += (1 if marker == 0xFF else 2) if bare else 2 + max(int.from_bytes(data[at + 2 : at + 4], "big"), 2)
    return None
