"""Which part of a page is what it is about."""

from __future__ import annotations

import re

from operant.kit.readable.tree import Node

_NEVER = frozenset(
    [
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "canvas",
        "iframe",
        "object",
        "embed",
        "audio",
        "video",
        "map",
        "head",
        "form",
        "button",
        "input",
        "select",
        "textarea",
        "nav",
        "dialog",
        "menu",
        "link",
        "meta",
    ]
)
_ROLES = frozenset(
    [
        "navigation",
        "banner",
        "contentinfo",
        "complementary",
        "search",
        "dialog",
        "alertdialog",
        "alert",
        "menu",
        "menubar",
        "toolbar",
        "tablist",
        "tooltip",
    ]
)
_CLUTTER = re.compile(
    r"(?:^|[\s_-])(?:"
    r"ad|ads|advert\w*|adslot|sponsor\w*|promo\w*|banner|teaser|outbrain|taboola|paywall|"
    r"nav|navbar|navigation|menu|breadcrumbs?|crumbs?|pager|pagination|toolbar|topbar|masthead|skip\w*|"
    r"sidebar|side-bar|rail|aside|widget\w*|"
    r"footer|foot|site-footer|colophon|copyright|legal|"
    r"cookie\w*|consent|gdpr|cmp|newsletter\w*|subscri\w*|signup|sign-up|login|modal|popup|overlay|"
    r"share|sharing|social|follow|like-button|"
    r"related|recommend\w*|more-stories|read-next|read-more-list|also-like|trending|popular|most-read|"
    r"comment-form|respond|reply-form|disqus|"
    r"tracking|pixel|print-only|noprint|feedback|rating-widget|toc-toggle"
    r")(?:$|[\s_-])",
    re.IGNORECASE,
)
_KEEP = re.compile(r"(?:^|[\s_-])(?:article|content|main|body|post|entry|story|text|page)(?:$|[\s_-])", re.IGNORECASE)
_MAIN_SHARE = 0.35
"""How much of what is left a marked main part must have before everything around it is left out."""
_SHORT = 25


def drop_never(root: Node) -> None:
    """Take out what is no text on any page, but for what only leads elsewhere."""
    for node in list(root.walk()):
        if node.parent is not None and node.tag in _NEVER - {"nav", "menu"}:
            node.drop()


def drop_clutter(root: Node) -> None:
    """Take out what stands around the content."""
    total = len(root.text())
    for node in list(root.walk()):
        if node.parent is None or node.tag in ("html", "body"):
            continue
        if (
            node.tag in _NEVER
            or node.get("role").lower() in _ROLES
            or _is_frame(node)
            or _is_clutter(node, total)
            or _is_link_list(node)
        ):
            node.drop()


def main_of(root: Node) -> Node:
    """Return the element that is marked as the content, where there is one that holds enough; else the body."""
    body = root.find("body") or root
    whole = max(_length(body), 1)
    marked = [node for node in body.walk() if _is_marked(node)]
    enough = [node for node in marked if _length(node) >= whole * _MAIN_SHARE]
    if not enough:
        return body
    mains = [node for node in enough if node.tag == "main" or node.get("role") == "main"]
    return mains[0] if mains else max(enough, key=_length)


def _is_marked(node: Node) -> bool:
    return (
        node.tag in ("main", "article")
        or node.get("role").lower() in ("main", "article")
        or node.get("itemprop").lower() == "articlebody"
    )


def _is_frame(node: Node) -> bool:
    """Tell headers and footers of the page from those of an article."""
    if node.tag == "aside":
        return True
    if node.tag not in ("header", "footer"):
        return False
    above = node.parent
    while above is not None:
        if above.tag in ("article", "main", "section") or _is_marked(above):
            return node.tag == "footer" and above.tag != "blockquote" and len(node.text()) < 400
        above = above.parent
    return not (node.tag == "header" and node.find("h1") is not None and len(node.text()) > 200)


def _is_clutter(node: Node, total: int) -> bool:
    names = f"{node.get('class')} {node.get('id')}"
    if not names.strip() or _is_marked(node) or node.tag in ("pre", "code", "table", "tbody", "tr", "td"):
        return False
    found = _CLUTTER.search(names)
    if not found or (_KEEP.search(names) and found[0].strip(" _-").lower() not in ("related", "sidebar", "footer")):
        return False
    # A name may lie: whatever holds most of the page is the page.
    return len(node.text()) < total * 0.5


def _is_link_list(node: Node) -> bool:
    """Tell a list that only leads elsewhere: many links, hardly a word beside them."""
    if node.tag not in ("ul", "ol", "div", "p", "td", "center", "font", "span"):
        return False
    links = [one for one in node.walk() if one.tag == "a"]
    if len(links) < 4:
        return False
    text = len(" ".join(node.text().split()))
    linked = sum(len(" ".join(link.text().split())) for link in links)
    return text > 0 and linked / text > 0.85 and linked / len(links) < _SHORT


def _length(node: Node) -> int:
    return len(" ".join(node.text().split()))
