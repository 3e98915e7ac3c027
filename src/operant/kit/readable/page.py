"""A page as a model reads it."""

from __future__ import annotations

import re

import msgspec

from operant.kit.readable.content import drop_clutter, drop_never, main_of
from operant.kit.readable.hidden import drop_hidden
from operant.kit.readable.markdown import Writer
from operant.kit.readable.tree import Node, parsed

_SCRIPTED = re.compile(
    r"(?:enable|turn on|requires?|activate|without) (?:your )?java ?script|javascript (?:is )?(?:disabled|required)",
    re.IGNORECASE,
)
_ROOTS = frozenset(("root", "app", "__next", "__nuxt", "react-root", "svelte", "main-app", "application"))
_LITTLE = 200
_SHARE = 4
"""Text that is less than this part of the page, and little, is not what the page is about."""


class Page(msgspec.Struct):
    """What was found; `wants_script` says that the page is made by JavaScript that has not run."""

    title: str = ""
    by: str = ""
    date: str = ""
    site: str = ""
    text: str = ""
    links: list[tuple[str, str]] = []
    wants_script: bool = False


def read_page(html: str, url: str, *, inline_links: bool = True) -> Page:
    """Return the readable part of a page."""
    root = parsed(html)
    about = _About(root)
    base = root.find("base")
    place = base.get("href") or url if base else url
    scripted = _wants_script(root)
    drop_hidden(root)
    drop_never(root)
    there = len(" ".join(root.text().split()))
    writer = Writer(place, inline_links=inline_links)
    drop_clutter(root)
    text = writer.written(main_of(root))
    if len(text) < min(_LITTLE, there / _SHARE):
        # What was taken for clutter was the page: a list of links, a menu.
        whole = parsed(html)
        drop_hidden(whole)
        drop_never(whole)
        writer = Writer(place, inline_links=inline_links)
        text = writer.written(whole.find("body") or whole)
    links = [(words, place) for place, words in writer.links.items()]
    return Page(
        title=about.title,
        by=about.first("author", "article:author", "byl", "parsely-author"),
        date=about.first("article:published_time", "datepublished", "date", "pubdate", "dc.date", "citation_date")[:10],
        site=about.first("og:site_name", "application-name"),
        text=text,
        links=links,
        wants_script=len(text) < _LITTLE and scripted,
    )


class _About:
    """What the head of a page says."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._metas: dict[str, str] = {}
        for node in root.walk():
            if node.tag == "meta":
                name = node.get("property") or node.get("name") or node.get("itemprop")
                self._metas.setdefault(name.lower(), " ".join(node.get("content").split()))

    def first(self, *names: str) -> str:
        """Return the first of some values that is there."""
        return next((self._metas[name] for name in names if self._metas.get(name)), "")

    @property
    def title(self) -> str:
        """Return the title: what is meant for sharing, the title, else the first heading."""
        found = self._root.find("title")
        own = " ".join(found.text().split()) if found else ""
        if not own and not self.first("og:title"):
            heading = self._root.find("h1")
            own = " ".join(heading.text().split()) if heading else ""
        return self.first("og:title") or own


def _wants_script(root: Node) -> bool:
    scripts = 0
    for node in root.walk():
        if node.tag == "script" and "json" not in node.get("type"):
            scripts += 1
        if node.tag == "noscript" and _SCRIPTED.search(node.text()):
            return True
        if node.get("id") in _ROOTS and not node.text().strip():
            return True
    return scripts > 0
