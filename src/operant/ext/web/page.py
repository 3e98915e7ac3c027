"""What came of reading an address."""

from __future__ import annotations

from operant.sdk import BlobRef, Record


class CannotFetch(Exception):
    """Say in one sentence why an address cannot be read, and what to do where something helps."""


class Raw(Record):
    """Bytes as they were sent, or a page as a browser shows it; `tier` says how they were got."""

    url: str
    body: bytes
    media_type: str
    charset: str = ""
    tier: str = "plain"
    truncated: bool = False


class Read(Record):
    """Words for a model: a head of what is known, and the text; a picture is kept as bytes."""

    url: str
    head: str
    text: str
    tier: str
    links: tuple[tuple[str, str], ...] = ()
    picture: BlobRef | None = None
