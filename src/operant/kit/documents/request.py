"""What is asked of the program that reads documents, what it answers, and which files are for it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

HEAD_BYTES = 4096
TEXT_CHARS = 4_000_000
BODY_BYTES = 4 * TEXT_CHARS

AnswerKind = Literal["text", "pages", "image", "refused"]

_BY_MAGIC = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF87a", "image"),
    (b"GIF89a", "image"),
    (b"{\\rtf", "rtf"),
    (b"\x1f\x8b", "archive"),
    (b"BZh", "archive"),
    (b"\xfd7zXZ\0", "archive"),
    (b"PK\x03\x04", "archive"),
    (b"PK\x05\x06", "archive"),
)
_OFFICE = frozenset(
    ("docx", "docm", "dotx", "xlsx", "xlsm", "xltx", "pptx", "pptm", "potx", "ppsx", "odt", "ods", "odp", "ott", "epub")
)
_ELSEWHERE = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted Office file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"BM", "a BMP image"),
)


class CannotRead(Exception):
    """Say in one sentence why a document cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Which file to read, as what, and which part of it; `offset` and `limit` count pages."""

    root: str
    roots: dict[str, str]
    path: str
    kind: str
    offset: int = 1
    limit: int = 2000
    largest: int = 100_000_000

    def encode(self) -> str:
        """Return it as the argument of the program."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of it: `body` are words in UTF-8 (`text`, `refused`), pages divided by form feeds, or a picture.

    `first` is the number of the first page in `body`, `total` how many there are
    (0: not known).
    """

    kind: AnswerKind
    body: bytes = b""
    media_type: str = "text/plain"
    note: str = ""
    first: int = 1
    total: int = 0

    def encode(self) -> bytes:
        """Return a line of JSON, and the body."""
        fields = {name: value for name, value in asdict(self).items() if name != "body"}
        return json.dumps(fields).encode() + b"\n" + self.body


def read_answer(data: bytes) -> Answer:
    """Return what the program wrote. Raises `CannotRead` when that is no answer."""
    line, _, body = data.partition(b"\n")
    try:
        return Answer(body=body, **json.loads(line))
    except (ValueError, TypeError) as error:
        raise CannotRead("It could not be read; it is damaged, or made to be hard to read.") from error


def kind_of(name: str, head: bytes) -> str:
    """Tell what reads a file, by its first bytes and its name; empty where nothing here does."""
    ending = name.rpartition(".")[2].lower()
    if ending == "ipynb" and head.lstrip()[:1] == b"{":
        return "notebook"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image"
    if head[257:262] == b"ustar":
        return "archive"
    found = next((kind for magic, kind in _BY_MAGIC if head.startswith(magic)), "")
    return "office" if found == "archive" and head[:2] == b"PK" and ending in _OFFICE else found


def said_kind(head: bytes) -> str:
    """Name a format that is known and not read here, or nothing."""
    return next((words for magic, words in _ELSEWHERE if head.startswith(magic)), "")
