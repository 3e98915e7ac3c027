"""The second and third tier: a page as Chromium shows it, with every connection through our own proxy."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from operant.ext.web.page import CannotFetch, Raw
from operant.kit.egress import Egress
from operant.kit.proxy import Proxy, Verdict

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium
    from playwright.async_api import Page as Tab
    from playwright.async_api import Response

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
IDLE_S = 60.0
_TABS = 2
_SETTLE_MS = 4_000
_FLAGS = (
    "--proxy-bypass-list=<-loopback>",  # without it Chromium reaches this machine past the proxy
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-extensions",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--mute-audio",
    "--disable-dev-shm-usage",
)
_STEALTH = ("--disable-blink-features=AutomationControlled",)
_UNMARKED = """
Object.defineProperty(Navigator.prototype, 'webdriver', {get: () => false, configurable: true});
window.chrome = window.chrome || {runtime: {}};
Object.defineProperty(navigator, 'plugins', {get: () => [1, 2, 3]});
Object.defineProperty(navigator, 'languages', {get: () => ['en-US', 'en']});
"""


class Browsing:
    """One Chromium that is started when it is needed and ended when it is not; a page gets a profile of its own."""

    def __init__(self, egress: Egress, program: str) -> None:
        self._egress = egress
        self._program = program
        self._stack = AsyncExitStack()
        self._chromium: Chromium | None = None
        self._starting = asyncio.Lock()
        self._tabs = asyncio.Semaphore(_TABS)
        self._used = 0
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Browsing]:
        """Be ready while the context is open."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            watching = group.create_task(self._end_when_idle())
            try:
                yield self
            finally:
                watching.cancel()
                await self._end()

    @property
    def program(self) -> str:
        """Return the browser's path, or nothing."""
        return self._program or next((path for name in PROGRAMS if (path := shutil.which(name))), "")

    async def render(self, url: str, timeout_s: float, *, stealth: bool) -> Raw:
        """Return a page after its scripts have run. Raises `CannotFetch`."""
        from playwright.async_api import Error

        async with self._tabs:
            self._used += 1
            denied: list[str] = []
            try:
                chromium = await self._started()
                return await self._shown(chromium, url, timeout_s, stealth=stealth)
            except Error as error:
                why = error.message.splitlines()[0] if error.message else "no reason given"
                raise CannotFetch(f"{url} cannot be shown by the browser: {why}") from error
            finally:
                self._used += 1
                denied.clear()

    async def _shown(self, chromium: Chromium, url: str, timeout_s: float, *, stealth: bool) -> Raw:
        agent = _plain_agent(chromium.version) if stealth else None
        context = await chromium.new_context(
            accept_downloads=False, service_workers="block", user_agent=agent, locale="en-US", java_script_enabled=True
        )
        try:
            if stealth:
                await context.add_init_script(_UNMARKED)
            tab = await context.new_page()
            answer = await tab.goto(url, wait_until="domcontentloaded", timeout=timeout_s * 1000)
            await _settled(tab)
            status = answer.status if answer else 200
            if status >= 400 and not await _has_words(tab):
                raise CannotFetch(f"{tab.url} answered {status}{await _said(answer)}")
            html = await tab.content()
            tier = "stealth browser" if stealth else "browser with JavaScript"
            return Raw(url=tab.url, body=html.encode(), media_type="text/html", charset="utf-8", tier=tier)
        finally:
            await context.close()

    async def _started(self) -> Chromium:
        async with self._starting:
            if self._chromium is None or not self._chromium.is_connected():
                await self._stack.aclose()
                self._chromium = await self._start()
            return self._chromium

    async def _start(self) -> Chromium:
        """Start the proxy, and Chromium behind it."""
        from playwright.async_api import async_playwright

        token = secrets.token_urlsafe(24)
        self._stack = AsyncExitStack()
        port = await self._stack.enter_async_context(Proxy(self._egress, token=token, on_verdict=_noted).serving_tcp())
        playwright: Any = await self._stack.enter_async_context(async_playwright())
        chromium = await playwright.chromium.launch(
            executable_path=self.program,
            headless=True,
            args=[*_FLAGS, *_STEALTH, *(["--no-sandbox"] if os.geteuid() == 0 else [])],
            proxy={"server": f"http://127.0.0.1:{port}", "username": "operant", "password": token},
        )
        self._stack.push_async_callback(chromium.close)
        return chromium

    async def _end_when_idle(self) -> None:
        while True:
            before = self._used
            await asyncio.sleep(IDLE_S)
            if self._used == before and self._chromium is not None:
                async with self._starting:
                    await self._end()

    async def _end(self) -> None:
        self._chromium = None
        await self._stack.aclose()


async def _settled(tab: Tab) -> None:
    """Wait until a page has stopped to load things, but not for long: some never do."""
    from playwright.async_api import TimeoutError as Waited

    try:
        await tab.wait_for_load_state("networkidle", timeout=_SETTLE_MS)
    except Waited:
        return


async def _has_words(tab: Tab) -> bool:
    return len((await tab.inner_text("body")).strip()) > 400


async def _said(answer: Response | None) -> str:
    """Return what our proxy said, where it was the one that refused."""
    if answer is None:
        return "."
    text = (await answer.text()).strip()
    return f": {text[:300]}" if "is not dialled" in text else "."


def _noted(verdict: Verdict) -> None:
    """Take a verdict; what a page may not reach is not worth a line each time."""


def _plain_agent(version: str) -> str:
    major = version.partition(".")[0]
    return f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 Safari/537.36"
