"""RSS and Atom as a list of entries."""

from __future__ import annotations

from urllib.parse import urljoin
from xml.etree.ElementTree import Element

from operant.kit.documents.markup import read_xml
from operant.kit.documents.request import CannotRead
from operant.kit.readable.tree import parsed

_MOST_ENTRIES = 100
_SUMMARY_CHARS = 300


def feed(data: bytes, url: str) -> str:
    """Return a feed's entries as Markdown; nothing where it is none."""
    try:
        root = read_xml(data)
    except CannotRead:
        return ""
    if _name(root) not in ("rss", "feed", "rdf"):
        return ""
    title = next((_text(one) for one in root.iter() if _name(one) == "title"), "")
    entries = [one for one in root.iter() if _name(one) in ("item", "entry")]
    lines = [f"# {title}", f"{len(entries)} entries"]
    lines += [_entry(one, url) for one in entries[:_MOST_ENTRIES]]
    return "\n\n".join(lines)


def _entry(entry: Element, url: str) -> str:
    found: dict[str, str] = {}
    for child in entry:
        name = _name(child)
        value = child.get("href", "") if name == "link" and child.get("href") else _text(child)
        if name not in found or (name == "link" and child.get("rel") in (None, "alternate")):
            found[name] = value
    date = found.get("pubdate") or found.get("published") or found.get("updated") or found.get("date") or ""
    words = " ".join(parsed(found.get("description") or found.get("summary") or "").text().split())
    head = f"- [{found.get('title') or 'untitled'}]({urljoin(url, found.get('link', ''))})"
    cut = f"{words[:_SUMMARY_CHARS]}…" if len(words) > _SUMMARY_CHARS else words
    return "\n  ".join(one for one in (f"{head} {date}".rstrip(), cut) if one)


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())
