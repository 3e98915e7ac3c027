"""What can be set about the web."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.sdk import Record


class WebSettings(Record, forbid_unknown_fields=True):
    """How pages are read and searched for."""

    chromium: Annotated[str, Meta(description="The browser for pages made by JavaScript; empty: found on PATH.")] = ""
    max_bytes: Annotated[int, Meta(ge=1000, description="Bytes of a page that are read, unpacked.")] = 5_000_000
    timeout_s: Annotated[float, Meta(gt=0, description="How long one page may take.")] = 30.0
    searxng: Annotated[str, Meta(description="Address of a SearXNG server, such as http://127.0.0.1:8888.")] = ""
    search: Annotated[
        tuple[str, ...],
        Meta(description="Search engines in order: brave, tavily, exa, searxng, duckduckgo. Empty: what has a key."),
    ] = ()
    endpoints: Annotated[
        dict[str, str], Meta(description="Other addresses of search engines, by name; they may be private ones.")
    ] = {}
