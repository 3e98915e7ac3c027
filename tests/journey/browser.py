"""A real Chromium on the page of a listening system; whatever goes wrong in it fails the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARTIFACTS = Path(os.environ.get("OPERANT_ARTIFACTS", "artifacts"))

needs_browser = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium: apt-get install chromium")


class Watched:
    """A page, and what it asked for and complained about."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.asked: list[str] = []
        self.complaints: list[str] = []
        # Chromium says so itself when somebody goes elsewhere while a connection comes about.
        self.expected = ["closed before the connection is established"]
        page.on("request", lambda request: self.asked.append(f"{request.method} {request.url}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._said)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(words in message.text for words in self.expected):
            self.complaints.append(f"{message.type}: {message.text}")

    async def go(self, place: str) -> None:
        """Look at another part of the page."""
        await self.page.evaluate("(place) => { location.hash = place }", f"#/{place}")

    async def say(self, text: str) -> None:
        """Send a message."""
        await self.page.get_by_label("Message", exact=True).fill(text)
        await self.page.keyboard.press("Enter")

    async def picture(self, name: str) -> None:
        """Keep a picture of what is seen."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=ARTIFACTS / f"{name}.png", animations="disabled", caret="hide")

    def strangers(self) -> list[str]:
        """Return requests that went elsewhere."""
        home = urlsplit(self.url).netloc
        return [one for one in self.asked if urlsplit(one.partition(" ")[2]).netloc not in (home, "")]


@asynccontextmanager
async def browsing(link: str, *, width: int = 1280, height: int = 860, dark: bool = False) -> AsyncIterator[Watched]:
    """Open the page by a login link; at the end it must have asked nobody else and complained about nothing."""
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            permissions=["clipboard-read", "clipboard-write"],
            timezone_id="UTC",
            locale="en-GB",
        )
        context.set_default_timeout(10_000)
        page = await context.new_page()
        watched = Watched(page, link)
        await page.goto(link)
        try:
            yield watched
        except BaseException:
            await watched.picture(
                f"failed-{os.environ.get('PYTEST_CURRENT_TEST', 'test').split('::')[-1].split(' ')[0]}"
            )
            raise
        finally:
            await browser.close()
    assert not watched.strangers(), watched.strangers()
    assert not watched.complaints, watched.complaints


AXE = """async () => {
  const found = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] });
  return found.violations.filter((one) => ["serious", "critical", "moderate"].includes(one.impact))
    .map((one) => `${one.impact} ${one.id}: ` + one.nodes.slice(0, 3)
      .map((node) => node.target + " " + node.failureSummary).join(" | "));
}"""


async def stumbles(page: Any) -> list[str]:
    """Return what a person with a screen reader or weak eyes would stumble over."""
    import axe_playwright_python

    source = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
    await page.evaluate(source)
    return await page.evaluate(AXE)
