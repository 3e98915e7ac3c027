"""Read office files (OOXML, OpenDocument) and books (EPUB) as plain text with headings, lists and tables."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element

from operant.kit.documents.markup import html_text, local, read_part, read_xml
from operant.kit.documents.request import TEXT_CHARS, Answer, CannotRead
from operant.kit.documents.sheets import ods_lines, xlsx_lines

_MOST_PARTS = 10_000
_CONTENT = "content.xml"


def read_office(file: BinaryIO) -> Answer:
    """Return the words of an office file. Raises `CannotRead`."""
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        if len(names) > _MOST_PARTS:
            raise CannotRead(f"It has more than {_MOST_PARTS:,} parts.")
        text = "\n".join(_bounded(_lines(archive, names)))
    return Answer(kind="text", body=text.encode("utf-8", "replace"))


def _lines(archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    if "word/document.xml" in names:
        return _docx(archive, names)
    if "xl/workbook.xml" in names:
        return xlsx_lines(archive, names)
    if "ppt/presentation.xml" in names:
        return _pptx(archive, names)
    if "META-INF/container.xml" in names:
        return _epub(archive)
    if _CONTENT in names:
        return _opendocument(archive)
    raise CannotRead("It is no office file that is known here.")


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    room = TEXT_CHARS
    for line in lines:
        if len(line) > room:
            yield "[the rest is not shown]"
            return
        room -= len(line) + 1
        yield line


# ---------------------------------------------------------------------------- word processor


def _docx(archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    yield from _word_blocks(read_xml(read_part(archive, "word/document.xml")))
    for part, title in (("word/footnotes.xml", "Footnotes"), ("word/comments.xml", "Comments")):
        if part in names and (lines := [line for line in _word_blocks(read_xml(read_part(archive, part))) if line]):
            yield f"\n[{title}]"
            yield from lines


def _word_blocks(parent: Element) -> Iterator[str]:
    for child in parent:
        if child.tag == "p":
            yield _paragraph(child)
        elif child.tag == "tbl":
            yield from _word_table(child)
        elif child.tag != "Fallback":
            yield from _word_blocks(child)


def _paragraph(paragraph: Element) -> str:
    text = "".join(_runs(paragraph))
    style = local(paragraph, "pStyle")
    name = (style.get("val") or "").lower() if style is not None else ""
    if name.startswith("heading") and name[7:].isdigit():
        return f"{'#' * min(int(name[7:]), 6)} {text}"
    if name == "title":
        return f"# {text}"
    if local(paragraph, "numPr") is not None and text:
        return f"- {text}"
    return text


def _runs(parent: Element) -> Iterator[str]:
    """Yield the words of a paragraph in order; a text box is said once, not once more for older programs."""
    for child in parent:
        if child.tag == "t":
            yield child.text or ""
        elif child.tag == "tab" and parent.tag == "r":
            yield "\t"
        elif child.tag in ("br", "cr"):
            yield "\n"
        elif child.tag not in ("Fallback", "pPr", "rPr"):
            yield from _runs(child)


def _word_table(table: Element) -> Iterator[str]:
    for row in table.iter("tr"):
        cells = (" ".join(line for line in _word_blocks(cell) if line) for cell in row if cell.tag == "tc")
        yield f"| {' | '.join(cells)} |"


# ---------------------------------------------------------------------------- slides


def relations(archive: zipfile.ZipFile, names: set[str], part: str) -> dict[str, str]:
    """Return the parts that a part refers to, by id."""
    folder, _, last = part.rpartition("/")
    listed = f"{folder}/_rels/{last}.rels"
    if listed not in names:
        return {}
    found: dict[str, str] = {}
    for relation in read_xml(read_part(archive, listed)).iter("Relationship"):
        target = relation.get("Target") or ""
        path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
        found[relation.get("Id") or ""] = path
    return found


def _pptx(archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    main = "ppt/presentation.xml"
    targets = relations(archive, names, main)
    for number, slide in enumerate(read_xml(read_part(archive, main)).iter("sldId"), 1):
        part = targets.get(slide.get("r:id") or "", "")
        if part not in names:
            continue
        yield f"\n## Slide {number}"
        yield from _slide_words(read_xml(read_part(archive, part)))
        for other in relations(archive, names, part).values():
            if other.startswith("ppt/notesSlides/") and other in names:
                words = [line for line in _slide_words(read_xml(read_part(archive, other))) if line != str(number)]
                yield from ("[Notes]", *words) if words else ()


def _slide_words(slide: Element) -> Iterator[str]:
    for paragraph in slide.iter("p"):
        if text := "".join(_runs(paragraph)).strip():
            yield text


# ---------------------------------------------------------------------------- OpenDocument


def _opendocument(archive: zipfile.ZipFile) -> Iterator[str]:
    body = local(read_xml(read_part(archive, _CONTENT)), "body")
    if body is None:
        raise CannotRead("It has no body.")
    return _open_blocks(body)


def _open_blocks(parent: Element) -> Iterator[str]:
    for child in parent:
        if child.tag == "h":
            level = child.get("outline-level") or "1"
            yield f"{'#' * min(int(level) if level.isdigit() else 1, 6)} {_open_words(child)}"
        elif child.tag == "p":
            yield _open_words(child)
        elif child.tag == "list-item":
            yield f"- {' '.join(_open_blocks(child))}"
        elif child.tag == "table":
            yield from ods_lines(child, _open_words)
        elif child.tag == "page":
            yield f"\n## {child.get('name') or 'Slide'}"
            yield from _open_blocks(child)
        elif child.tag not in ("tracked-changes", "forms", "sequence-decls"):
            yield from _open_blocks(child)


def _open_words(element: Element) -> str:
    pieces = [element.text or ""]
    for child in element:
        if child.tag == "s":
            count = child.get("c") or "1"
            pieces.append(" " * min(int(count) if count.isdigit() else 1, 100))
        elif child.tag == "tab":
            pieces.append("\t")
        elif child.tag == "line-break":
            pieces.append("\n")
        elif child.tag != "annotation":
            pieces.append(_open_words(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


# ---------------------------------------------------------------------------- books


def _epub(archive: zipfile.ZipFile) -> Iterator[str]:
    container = read_xml(read_part(archive, "META-INF/container.xml"))
    root = local(container, "rootfile")
    package = (root.get("full-path") or "") if root is not None else ""
    opf = read_xml(read_part(archive, package))
    folder = posixpath.dirname(package)
    items = {item.get("id"): item.get("href") or "" for item in opf.iter("item")}
    title = local(opf, "title")
    if title is not None and title.text:
        yield f"# {title.text}"
    for reference in opf.iter("itemref"):
        href = items.get(reference.get("idref"), "")
        if href:
            yield ""
            yield html_text(read_part(archive, posixpath.normpath(posixpath.join(folder, href))))
