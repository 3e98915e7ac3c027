"""Register the tools of the web."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from operant.ext.web.browser import Browsing
from operant.ext.web.fetching import Fetching, Render
from operant.ext.web.page import CannotFetch, Read
from operant.ext.web.search import CannotSearch, Search
from operant.ext.web.settings import WebSettings
from operant.kit.text import plain
from operant.sdk import CallContext, FunctionTool, Host, Text, ToolResult, failed, tool

OUTSIDE = "outside"
_MOST_RESULTS = 20
_NOTE_CHARS = 400


@asynccontextmanager
async def setup(host: Host, settings: WebSettings) -> AsyncGenerator[None]:
    """Offer the tools while the context is open."""
    async with Browsing(host.http.egress, settings.chromium).open() as browsing:
        host.tool(fetch_tool(Fetching(host, settings, browsing)))
        host.tool(search_tool(Search(host, settings)))
        yield


def fetch_tool(fetching: Fetching) -> FunctionTool:
    """Make the tool `web_fetch`."""

    @tool(effect="read", timeout_s=120)
    async def web_fetch(
        url: str,
        call: CallContext,
        offset: Annotated[int, "in characters"] = 0,
        links: Annotated[bool, "list all links at the end"] = False,
        render: Annotated[Render, "run JavaScript"] = "auto",
    ) -> ToolResult:
        """Read a web page, feed, PDF or picture as text."""
        try:
            read = await fetching.read(call.session, url, render, links=links)
        except CannotFetch as error:
            return failed(str(error))
        text = Text(text=page(read, max(offset, 0), call.agent.limits.tool_output_chars - _NOTE_CHARS, links=links))
        parts = (text, read.picture) if read.picture else (text,)
        return ToolResult(parts=parts, labels=(OUTSIDE,))

    return web_fetch


def search_tool(search: Search) -> FunctionTool:
    """Make the tool `web_search`."""

    @tool(effect="read", timeout_s=90)
    async def web_search(query: str, limit: int = 8) -> ToolResult:
        """Search the web."""
        try:
            engine, results = await search.find(query, min(max(limit, 1), _MOST_RESULTS))
        except CannotSearch as error:
            return failed(str(error))
        lines = [
            "\n   ".join(one for one in (f"{at}. {found.title} {found.date}".rstrip(), found.url, found.snippet) if one)
            for at, found in enumerate(results, 1)
        ]
        text = plain("\n".join(lines) or f"Nothing was found ({engine}).")
        return ToolResult(parts=(Text(text=text),), labels=(OUTSIDE,))

    return web_search


def page(read: Read, offset: int, room: int, *, links: bool) -> str:
    """Return a part of what was read, with lines that say what it is and how to read on."""
    whole = read.text
    if links and read.links:
        whole += "\n\n## Links\n" + "\n".join(f"- [{words}]({place})" for words, place in read.links)
    whole = plain(whole)
    shown = whole[offset : offset + max(room, 200)]
    lead = f"[{read.url}, {len(whole):,} characters, {read.tier}]"
    if not shown:
        return f"{lead}\n[there is nothing at offset {offset:,}]" if whole or offset else f"{lead}\n[no text]"
    end = offset + len(shown)
    more = f"\n[more at offset={end}]" if end < len(whole) else ""
    head = f"{plain(read.head)}\n\n" if read.head and not offset else ""
    return f"{lead}\n{head}{shown}{more}"
