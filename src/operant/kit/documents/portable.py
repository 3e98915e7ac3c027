"""Read the text of PDF files: with pypdf, else with `pdftotext`."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from operant.kit.documents.request import TEXT_CHARS, Answer, CannotRead

if TYPE_CHECKING:
    from pypdf import PdfReader

MOST_PAGES = 200
_PROGRAMS = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
_LOCKED = "It is encrypted with a password."


def read_pdf(file: BinaryIO, offset: int, limit: int, hand_over: Callable[[Answer], None]) -> Answer:
    """Return pages of a PDF file, divided by form feeds. Raises `CannotRead`.

    Without pypdf `hand_over` gets the answer without its body, and this process becomes `pdftotext`, which writes it.
    """
    limit = min(limit, MOST_PAGES)
    if importlib.util.find_spec("pypdf") is not None:
        return _with_pypdf(file, offset, limit)
    return become_pdftotext(file, offset, limit, hand_over)


def become_pdftotext(file: BinaryIO, offset: int, limit: int, hand_over: Callable[[Answer], None]) -> NoReturn:
    """Let `pdftotext` write the pages. Raises `CannotRead` where there is none."""
    program = shutil.which("pdftotext", path=_PROGRAMS)
    if program is None:
        raise CannotRead("To read PDF files: pip install 'operant[files]', or install poppler-utils (pdftotext).")
    hand_over(Answer(kind="pages", first=offset))
    os.dup2(file.fileno(), 0)
    last = str(offset + limit - 1)
    os.execv(program, [program, "-q", "-enc", "UTF-8", "-f", str(offset), "-l", last, "-", "-"])


def _with_pypdf(file: BinaryIO, offset: int, limit: int) -> Answer:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise CannotRead(_LOCKED)
        total = len(reader.pages)
        pages = _pages(reader, range(min(offset - 1, total), min(offset - 1 + limit, total)))
    except DependencyError as error:
        raise CannotRead(f"It is encrypted in a way that needs another package: {error}.") from error
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise CannotRead(f"It is damaged: {str(error)[:200] or type(error).__name__}.") from error
    return Answer(kind="pages", body="\f".join(pages).encode("utf-8", "replace"), first=offset, total=total)


def _pages(reader: PdfReader, numbers: range) -> list[str]:
    pages: list[str] = []
    room = TEXT_CHARS
    for number in numbers:
        text = reader.pages[number].extract_text().replace("\f", "\n").strip()
        room -= len(text)
        if room < 0:
            break
        pages.append(text)
    return pages
