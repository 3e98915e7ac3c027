"""Read the words of RTF files."""

from __future__ import annotations

import re
from typing import BinaryIO

from operant.kit.documents.request import Answer, CannotRead

_MOST_BYTES = 20_000_000

_TOKEN = re.compile(
    r"\\'([0-9a-fA-F]{2})|\\([a-z]{1,32})(-?\d{1,10})? ?|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)", re.I
)
_SILENT = frozenset((
    "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "footer", "headerl",
    "headerr", "footerl", "footerr", "themedata", "colorschememapping", "datastore",
    "latentstyles", "rsidtbl", "generator", "listtable", "listoverridetable", "xmlnstbl",
))  # fmt: skip
_WORDS = {
    "par": "\n", "line": "\n", "sect": "\n", "page": "\n", "row": "\n", "tab": "\t", "cell": "\t", "emdash": "—",
    "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",  # noqa: RUF001
}  # fmt: skip


def read_rtf(file: BinaryIO) -> Answer:
    """Return the words of an RTF file. Raises `CannotRead`."""
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise CannotRead(f"It is larger than {_MOST_BYTES:,} bytes.")
    text = _Reader().read(data.decode("latin-1"))
    return Answer(kind="text", body=text.encode("utf-8", "replace"))


class _Reader:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._groups: list[tuple[bool, int]] = []
        self._silent = False
        self._after_unicode = 1  # how many characters stand in for one that old programs do not know
        self._skip = 0
        self._codepage = "cp1252"

    def read(self, source: str) -> str:
        for match in _TOKEN.finditer(source):
            byte, word, number, symbol, brace, text = match.groups()
            if brace:
                self._brace(brace)
            elif word:
                self._word(word.lower(), number)
            elif symbol:
                self._symbol(symbol)
            elif byte:
                self._say(bytes.fromhex(byte).decode(self._codepage, "replace"), 1)
            elif text:
                self._say(text, len(text))
        return "".join(self._pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()

    def _brace(self, brace: str) -> None:
        if brace == "{":
            self._groups.append((self._silent, self._after_unicode))
        elif self._groups:
            self._silent, self._after_unicode = self._groups.pop()
        self._skip = 0

    def _word(self, word: str, number: str | None) -> None:
        if word in _SILENT:
            self._silent = True
        elif word == "u" and number:
            self._skip = 0
            self._say(chr(int(number) & 0xFFFF), 1)
            self._skip = self._after_unicode
        elif word == "uc" and number:
            self._after_unicode = max(int(number), 0)
        elif word == "ansicpg" and number in ("932", "936", "949", "950", *map(str, range(1250, 1259))):
            self._codepage = f"cp{number}"
        elif word == "bin":
            self._silent = True
        elif word in _WORDS:
            self._say(_WORDS[word], 1)

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._silent = True
        elif symbol in "\\{}":
            self._say(symbol, 1)
        elif symbol == "~":
            self._say("\u00a0", 1)

    def _say(self, text: str, length: int) -> None:
        skipped = min(self._skip, length)
        self._skip -= skipped
        if not self._silent:
            self._pieces.append(text[skipped:])
