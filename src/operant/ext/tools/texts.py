"""Tell text from other files, decode it, and show a part of it."""

from __future__ import annotations

import codecs

from operant.kit.beneath import Beneath


def read_named(files: Beneath, path: str, limit: int) -> tuple[str, bytes]:
    """Return the one name of a file and its bytes."""
    return files.name_of(path), files.read_bytes(path, limit)


def is_binary(data: bytes) -> bool:
    """Tell whether bytes are something else than text."""
    return b"\0" in data[:8192] and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decoded(data: bytes) -> str:
    """Return the text of a file; what is not UTF-8 (or UTF-16 that says so) is replaced."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8", "replace")


def excerpt(name: str, text: str, offset: int, limit: int) -> str:
    """Return lines of a text, with a line on top that says which where it is not all of it."""
    lines = text.splitlines(keepends=True)
    chosen = lines[offset - 1 : offset - 1 + limit]
    if len(chosen) == len(lines):
        return text or f"[{name} is empty]"
    if not chosen:
        return f"[{name} has {len(lines):,} lines; there is no line {offset:,}]"
    return f"[{name}: lines {offset:,} to {offset + len(chosen) - 1:,} of {len(lines):,}]\n{''.join(chosen)}"
