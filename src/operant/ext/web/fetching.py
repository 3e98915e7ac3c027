"""Reading an address: the cheapest tier that gets at it, and pages that were read are not fetched again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from msgspec.structs import replace

from operant.ext.web.browser import Browsing
from operant.ext.web.page import CannotFetch, Raw, Read
from operant.ext.web.plain import ask
from operant.ext.web.reading import Reading
from operant.ext.web.settings import WebSettings
from operant.sdk import Host

Render = Literal["auto", "never", "always"]
_KEPT = 32
_KEPT_S = 600.0
_MISSING = (
    "pages made by JavaScript need a browser: install Chromium (Debian, Ubuntu: apt install chromium) and "
    "pip install 'operant[browser]'"
)


class Fetching:
    """Read addresses for sessions."""

    def __init__(self, host: Host, settings: WebSettings, browsing: Browsing) -> None:
        self._host = host
        self._settings = settings
        self._browsing = browsing
        self._reading = Reading(host.blobs, host.state)
        self._kept: OrderedDict[tuple[str, str, Render, bool], tuple[float, Read]] = OrderedDict()

    async def read(self, session: str, url: str, render: Render, *, links: bool) -> Read:
        """Return what an address says. Raises `CannotFetch`."""
        key = (session, url, render, links)
        now = self._host.clock.monotonic()
        kept = self._kept.get(key)
        if kept is not None and now - kept[0] < _KEPT_S:
            return kept[1]
        read = await self._read(url, render, inline_links=not links)
        self._kept[key] = (now, read)
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return read

    async def _read(self, url: str, render: Render, *, inline_links: bool) -> Read:
        if render == "always":
            return await self._rendered(url, inline_links, "asked for")
        asked = await ask(self._host.http, url, self._settings.max_bytes, self._settings.timeout_s)
        if asked.raw is None:
            if asked.challenge and render != "never" and self._able:
                return await self._rendered(url, inline_links, asked.challenge, stealth=True)
            raise CannotFetch(asked.refusal + (f" A browser might get it: {_MISSING}." if asked.challenge else ""))
        read, more = await self._reading.read(asked.raw, inline_links=inline_links)
        if not more or render == "never":
            return read
        if not self._able:
            return replace(read, text=f"{read.text}\n\n[This page is made by JavaScript; {_MISSING}.]".lstrip())
        return await self._rendered(url, inline_links, "it is made by JavaScript")

    async def _rendered(self, url: str, inline_links: bool, why: str, *, stealth: bool = False) -> Read:
        if not self._able:
            raise CannotFetch(f"{url} was not read: {_MISSING}.")
        raw: Raw = await self._browsing.render(url, self._settings.timeout_s, stealth=stealth)
        read, _ = await self._reading.read(raw, inline_links=inline_links)
        return replace(read, tier=f"{read.tier}, because {why}")

    @property
    def _able(self) -> bool:
        from importlib.util import find_spec

        return bool(self._browsing.program) and find_spec("playwright") is not None
