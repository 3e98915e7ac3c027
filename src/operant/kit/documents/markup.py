"""Read XML of strangers: no entities of its own, nothing from outside, bounded."""

from __future__ import annotations

import html.parser
import zipfile
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from operant.kit.documents.request import CannotRead

PART_BYTES = 32 * 2**20
_DEEPEST = 256
_MOST_ELEMENTS = 2_000_000
_BLOCKS = frozenset(
    (
        "p",
        "div",
        "li",
        "tr",
        "br",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "blockquote",
        "pre",
        "section",
        "table",
        "dt",
        "dd",
    )
)
_SILENT = frozenset(("script", "style", "head", "template"))


def read_part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a part of an office file. Raises `CannotRead` when it is not there or larger than parts may be."""
    try:
        with archive.open(name) as part:
            data = part.read(PART_BYTES + 1)
    except KeyError as error:
        raise CannotRead(f"Its part {name} is missing.") from error
    except RuntimeError as error:  # zipfile's word for a password
        raise CannotRead("It is encrypted with a password.") from error
    if len(data) > PART_BYTES:
        raise CannotRead(f"Its part {name[:100]} is larger than {PART_BYTES:,} bytes.")
    return data


def read_xml(data: bytes) -> Element:
    """Return the tree of a document, with local names. Raises `CannotRead`.

    An attribute of a relationship namespace is named `r:id`; others by their local names.
    """
    parser = expat.ParserCreate(namespace_separator="}")
    builder = _Builder()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.tree.data
    parser.EntityDeclHandler = _refuse_entity
    parser.ExternalEntityRefHandler = _refuse_entity
    parser.UnparsedEntityDeclHandler = _refuse_entity
    try:
        parser.Parse(data, True)
        return builder.tree.close()
    except expat.ExpatError as error:
        raise CannotRead(f"Its XML is damaged: {error}.") from error


def local(element: Element, name: str) -> Element | None:
    """Return the first element of a name below another."""
    return next(element.iter(name), None)


class _Builder:
    def __init__(self) -> None:
        self.tree = TreeBuilder()
        self._depth = 0
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._count > _MOST_ELEMENTS:
            raise CannotRead(f"Its XML has more than {_MOST_ELEMENTS:,} elements.")
        if self._depth > _DEEPEST:
            raise CannotRead("Its XML is nested too deeply.")
        self.tree.start(name.rpartition("}")[2], {_attribute(key): value for key, value in attributes.items()})

    def end(self, name: str) -> None:
        self._depth -= 1
        self.tree.end(name.rpartition("}")[2])


def _attribute(key: str) -> str:
    namespace, _, name = key.rpartition("}")
    return f"r:{name}" if namespace.endswith("/relationships") else name


def _refuse_entity(*declared: Any) -> int:
    raise CannotRead("Its XML declares entities, which documents have no need of; it is not read.")


def html_text(data: bytes) -> str:
    """Return the words of a page of HTML, a line a block."""
    words = _Words()
    words.feed(data.decode("utf-8", "replace"))
    words.close()
    lines = (" ".join(line.split()) for line in "".join(words.pieces).split("\n"))
    return "\n".join(line for line in lines if line)


class _Words(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        if tag in _BLOCKS:
            self.pieces.append("\n" + ("#" * int(tag[1]) + " " if tag[0] == "h" and tag[1:].isdigit() else ""))

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(self._silent - (tag in _SILENT), 0)
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append(data.replace("\n", " "))
