"""What a person does not see is not what a model is to read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operant.kit.readable.tree import Node

_RULE = re.compile(r"([^{}]{1,400})\{([^{}]{0,4000})\}")
_SIMPLE = re.compile(r"[.#]?[a-zA-Z_][\w-]*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|content-visibility\s*:\s*hidden"
    r"|(?<![\w-])opacity\s*:\s*0?(?:\.0+)?\s*(?:;|!|$)"
    r"|font-size\s*:\s*(?:0|0?\.\d+|1)\s*(?:px|pt|em|rem|%)?\s*(?:;|!|$)"
    r"|(?<![\w-])(?:left|right|top|text-indent|margin-left)\s*:\s*-\d{3,}"
    r"|clip\s*:\s*rect\(\s*0|clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0)"
    r"|(?<![\w-])(?:width|height|max-width|max-height)\s*:\s*[01](?:px)?\s*(?:;|!|$)"
    r"|transform\s*:\s*scale\(\s*0\s*[,)]",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"(?<![\w-])color\s*:\s*([^;!]+)", re.IGNORECASE)
_GROUND = re.compile(r"background(?:-color)?\s*:\s*([^;!]+)", re.IGNORECASE)
_WHITE = frozenset(("#ffffff", "#fefefe", "transparent"))
_NAMED = {"white": "#ffffff", "black": "#000000", "rgb(255,255,255)": "#ffffff", "rgb(0,0,0)": "#000000"}
_SHORT = re.compile(r"#[0-9a-f]{3}")
_CLASSES = re.compile(
    r"(?:^|[\s_-])(?:sr-only|visually-hidden|visuallyhidden|screen-reader-text|screenreader|hidden|d-none|is-hidden|offscreen)"
    r"(?:$|\s)",
    re.IGNORECASE,
)


def drop_hidden(root: Node) -> None:
    """Take out what is hidden by attributes, inline styles or plain rules of the page's own style blocks."""
    selectors = set(_hiding(root))
    for node in list(root.walk()):
        if node.parent is not None and _is_hidden(node, selectors):
            node.drop()


def hides(style: str) -> bool:
    """Tell whether declarations make an element invisible."""
    if _DECLARED.search(style):
        return True
    colour, ground = _COLOUR.search(style), _GROUND.search(style)
    if colour is None:
        return False
    shown = _plain(colour[1])
    return shown == _plain(ground[1]) if ground else shown in _WHITE


def _is_hidden(node: Node, selectors: set[str]) -> bool:
    attributes = node.attributes
    if "hidden" in attributes and attributes["hidden"].lower() != "until-found":
        return True
    if attributes.get("aria-hidden", "").lower() == "true":
        return True
    if attributes.get("style") and hides(attributes["style"]):
        return True
    classes = attributes.get("class", "")
    if classes and _CLASSES.search(classes):
        return True
    if not selectors:
        return False
    names = {node.tag, f"#{attributes.get('id', '')}", *(f".{one}" for one in classes.split())}
    return bool(names & selectors)


def _hiding(root: Node) -> Iterator[str]:
    """Yield the simple selectors whose rules hide."""
    for style in root.walk():
        if style.tag != "style":
            continue
        for rule in _RULE.finditer(_COMMENT.sub("", style.text())):
            if "@" in rule[1] or not hides(rule[2]):
                continue
            yield from (one.strip() for one in rule[1].split(",") if _SIMPLE.fullmatch(one.strip()))


def _plain(colour: str) -> str:
    """Return a colour in one spelling, as far as there are many."""
    name = "".join(colour.lower().split())
    name = _NAMED.get(name, name)
    return "#" + "".join(2 * digit for digit in name[1:]) if _SHORT.fullmatch(name) else name
