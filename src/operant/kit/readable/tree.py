"""A page as a tree, made of whatever was sent: nothing is too broken, and nothing is deep enough to hurt."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

DEEPEST = 100
"""Elements that stand deeper become children of this depth: what walks the tree has a stack that ends."""
MOST_NODES = 60_000
VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
_CLOSES = {
    "li": frozenset(("li",)),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
    "tr": frozenset(("tr", "td", "th")),
    "td": frozenset(("td", "th")),
    "th": frozenset(("td", "th")),
    "option": frozenset(("option",)),
    "tbody": frozenset(("thead", "tr", "td", "th")),
    "tfoot": frozenset(("tbody", "tr", "td", "th")),
}
"""What an element ends by beginning, unless one of its own containers stands in between."""
_CONTAINERS = frozenset(("ul", "ol", "dl", "table", "select"))
_ENDS_PARAGRAPH = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "details",
        "div",
        "dl",
        "fieldset",
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
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "ul",
    ]
)


class Node:
    """An element; its children are elements and words in their order."""

    __slots__ = ("attributes", "children", "depth", "parent", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], parent: Node | None) -> None:
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.depth = parent.depth + 1 if parent else 0
        self.children: list[Node | str] = []

    def get(self, name: str) -> str:
        """Return an attribute, or nothing."""
        return self.attributes.get(name, "")

    def elements(self) -> Iterator[Node]:
        """Yield the children that are elements."""
        return (child for child in self.children if isinstance(child, Node))

    def walk(self) -> Iterator[Node]:
        """Yield this element and all below it, in the order of the page."""
        pending: list[Node] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed([child for child in node.children if isinstance(child, Node)]))

    def find(self, *tags: str) -> Node | None:
        """Return the first element of some kinds."""
        return next((node for node in self.walk() if node.tag in tags), None)

    def text(self) -> str:
        """Return the words of this element and all below it."""
        pieces: list[str] = []
        pending: list[Node | str] = [self]
        while pending:
            one = pending.pop()
            if isinstance(one, str):
                pieces.append(one)
            else:
                pending.extend(reversed(one.children))
        return "".join(pieces)

    def drop(self) -> None:
        """Take this element out of the page."""
        if self.parent is not None:
            self.parent.children = [child for child in self.parent.children if child is not self]


class _Builder(HTMLParser):
    """Put the tree together."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("#root", {}, None)
        self._here = self.root
        self._nodes = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            return
        self._close_before(tag)
        node = Node(tag, {name: value or "" for name, value in reversed(attrs)}, self._here)
        self._here.children.append(node)
        if tag not in VOID and node.depth < DEEPEST:
            self._here = node

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        before = self._here
        self.handle_starttag(tag, attrs)
        if tag in VOID or tag in ("path", "circle", "rect", "use", "line", "g"):
            self._here = before

    def handle_endtag(self, tag: str) -> None:
        node: Node | None = self._here
        while node is not None and node.tag != tag:
            node = node.parent
        if node is not None and node.parent is not None:
            self._here = node.parent

    def handle_data(self, data: str) -> None:
        if data:
            self._here.children.append(data)

    def _close_before(self, tag: str) -> None:
        if tag in _ENDS_PARAGRAPH:
            self._close(frozenset(("p",)), frozenset(("button", "td", "th", "li")))
        closes = _CLOSES.get(tag)
        if closes:
            self._close(closes, _CONTAINERS - {tag})

    def _close(self, tags: frozenset[str], stops: frozenset[str]) -> None:
        """Leave the outermost of some elements that is open, but nothing beyond a container."""
        node: Node | None = self._here
        found: Node | None = None
        while node is not None and node.tag not in stops:
            found = node if node.tag in tags else found
            node = node.parent
        if found is not None and found.parent is not None:
            self._here = found.parent


def parsed(html: str) -> Node:
    """Return the root of a page."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.root
