"""A part of a page as Markdown."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from operant.kit.readable.tree import Node

_BLOCKS = frozenset(
    [
        "address",
        "article",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "li",
        "main",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
        "blockquote",
        "#root",
    ]
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_SPACE = re.compile(r"[ \t\r\f\v\n\u00a0]+")
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|brush|hljs)[-: ]+([\w+#-]+)", re.IGNORECASE)
_BLANKS = re.compile(r"\n{3,}")
_MOST_CELLS = 40


class Writer:
    """Write Markdown; links are absolute, and kept in the order in which they come."""

    def __init__(self, base: str, *, inline_links: bool) -> None:
        self._base = base
        self._inline = inline_links
        self.links: dict[str, str] = {}

    def written(self, node: Node) -> str:
        """Return an element and all below it."""
        return _BLANKS.sub("\n\n", self._block(node)).strip("\n")

    def _block(self, node: Node) -> str:
        tag = node.tag
        if tag in _HEADINGS:
            words = self._line(node)
            return f"\n\n{_HEADINGS[tag]} {words}\n\n" if words else ""
        if tag == "pre":
            return _code(node)
        if tag in ("ul", "ol"):
            return self._list(node)
        if tag == "table":
            return self._table(node)
        if tag == "blockquote":
            inner = self.written_children(node)
            return "\n\n" + "\n".join(f"> {line}".rstrip() for line in inner.split("\n")) + "\n\n" if inner else ""
        return self._simple(node)

    def _simple(self, node: Node) -> str:
        """Return what is a block with a mark around it, or just a block."""
        match node.tag:
            case "hr":
                return "\n\n---\n\n"
            case "dt":
                return f"\n\n**{self._line(node)}**\n"
            case "dd":
                return f"\n: {self.written_children(node)}\n"
            case "summary":
                return f"\n\n**{self._line(node)}**\n\n"
            case _:
                return f"\n\n{self.written_children(node)}\n\n"

    def written_children(self, node: Node) -> str:
        """Return what stands in an element: blocks apart, words between them as paragraphs."""
        pieces: list[str] = []
        run: list[Node | str] = []
        for child in node.children:
            if isinstance(child, Node) and _is_block(child):
                pieces += [self._paragraph(run), self._block(child)]
                run = []
            else:
                run.append(child)
        pieces.append(self._paragraph(run))
        return _BLANKS.sub("\n\n", "".join(pieces)).strip("\n")

    def _paragraph(self, run: list[Node | str]) -> str:
        words = _tidy("".join(self._inline_of(one) for one in run))
        return f"\n\n{words}\n\n" if words else ""

    def _line(self, node: Node) -> str:
        return _tidy("".join(self._inline_of(child) for child in node.children)).replace("\n", " ")

    def _inline_of(self, one: Node | str) -> str:
        if isinstance(one, str):
            return _SPACE.sub(" ", one)
        if one.tag == "br":
            return "\n"
        if one.tag == "img":
            return _picture(one)
        inner = "".join(self._inline_of(child) for child in one.children)
        if one.tag == "a":
            return self._link(one, inner)
        return _marked(one, inner)

    def _link(self, node: Node, words: str) -> str:
        place = node.get("href").strip()
        shown = _SPACE.sub(" ", words).strip()
        if not place or place.startswith(("#", "javascript:", "data:", "vbscript:")) or not shown:
            return words
        try:
            url = urljoin(self._base, place)
            scheme = urlsplit(url).scheme
        except ValueError:
            return words
        if scheme not in ("http", "https", "mailto"):
            return words
        self.links.setdefault(url, shown)
        lead, trail = words[: len(words) - len(words.lstrip())], words[len(words.rstrip()) :]
        return f"{lead}[{shown}]({url}){trail}" if self._inline else words

    def _list(self, node: Node) -> str:
        lines: list[str] = []
        number = 0
        for item in node.elements():
            if item.tag in ("ul", "ol"):
                lines += ["  " + line for line in self._list(item).strip("\n").split("\n")]
                continue
            inner = self.written_children(item)
            if not inner:
                continue
            number += 1
            mark = f"{number}. " if node.tag == "ol" else "- "
            first, *rest = re.sub(r"\n\n+", "\n", inner).split("\n")
            lines.append(mark + first)
            lines += [" " * len(mark) + line for line in rest]
        return "\n\n" + "\n".join(lines) + "\n\n" if lines else ""

    def _table(self, node: Node) -> str:
        rows = [row for row in node.walk() if row.tag == "tr" and _table_of(row) is node]
        cells = [[cell for cell in row.elements() if cell.tag in ("td", "th")] for row in rows]
        if _is_layout(node, cells):
            return "\n\n" + "\n\n".join(self.written_children(cell) for row in cells for cell in row) + "\n\n"
        lines = [[self._cell(cell) for cell in row[:_MOST_CELLS]] for row in cells if row]
        lines = [line for line in lines if any(line)]
        if not lines:
            return ""
        width = max(map(len, lines))
        head, *body = [line + [""] * (width - len(line)) for line in lines]
        written = [head, ["---"] * width, *body]
        caption = next((self._line(one) for one in node.elements() if one.tag == "caption"), "")
        table = "\n".join(f"| {' | '.join(line)} |" for line in written)
        return f"\n\n{caption}\n\n{table}\n\n" if caption else f"\n\n{table}\n\n"

    def _cell(self, cell: Node) -> str:
        return " ".join(self.written_children(cell).split()).replace("|", "\\|")


def _marked(node: Node, inner: str) -> str:
    """Return words with the marks that their element gives them."""
    words = inner.strip()
    if node.tag in ("code", "kbd", "samp", "tt"):
        plain = _SPACE.sub(" ", node.text()).strip()
        return f"`{plain}`" if plain and "`" not in plain else plain
    if node.tag in ("strong", "b") and words:
        return f"**{words}**" if words == inner else f" **{words}** "
    if node.tag == "sup" and words.isdigit():
        return f"^{words}"
    return f" {inner} " if node.tag in _BLOCKS else inner


def _is_block(node: Node) -> bool:
    return node.tag in _BLOCKS or any(child.tag in _BLOCKS for child in node.elements())


def _is_layout(table: Node, cells: list[list[Node]]) -> bool:
    """Tell a table that only puts things side by side."""
    if any(cell.tag == "th" for row in cells for cell in row):
        return False
    if any(node.tag == "table" and node is not table for node in table.walk()):
        return True
    flat = [cell for row in cells for cell in row]
    if not flat or max(map(len, cells)) < 2:
        return True
    return len(cells) <= 2 and any(len(cell.text()) > 400 for cell in flat)


def _table_of(row: Node) -> Node | None:
    above = row.parent
    while above is not None and above.tag != "table":
        above = above.parent
    return above


def _code(node: Node) -> str:
    text = node.text().strip("\n").rstrip()
    if not text:
        return ""
    classes = " ".join(one.get("class") for one in node.walk())
    found = _LANGUAGE.search(f"{classes} {node.get('data-lang') and 'lang-' + node.get('data-lang')}")
    fence = "````" if "```" in text else "```"
    return f"\n\n{fence}{found[1].lower() if found else ''}\n{text}\n{fence}\n\n"


def _picture(node: Node) -> str:
    words = _SPACE.sub(" ", node.get("alt")).strip()
    return f"[picture: {words}]" if words else ""


def _tidy(text: str) -> str:
    lines = (_SPACE.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
