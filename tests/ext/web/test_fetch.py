"""Reading addresses: each tier against a site that demands it, and everything that a page can be."""

from __future__ import annotations

import asyncio
import gzip
import shutil
from pathlib import Path

import pytest

from operant.ext.web.settings import WebSettings
from operant.sdk import BlobRef
from tests.ext.web.conftest import WebHost, web
from tests.kit.web import PRIVATE, Seen, pages, reply, site

HTML = {"Content-Type": "text/html; charset=utf-8"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: apt install chromium")
ARTICLE = (
    "<html><head><title>Bread</title><meta name=author content='Mira Vell'></head><body><nav><a href=/>Home</a></nav>"
    "<main><h1>Bread</h1><p>" + "Flour, water and salt. " * 30 + "<a href='/salt'>Salt</a></p></main>"
    "<footer>Imprint</footer></body></html>"
)
SHELL = (
    "<html><head><title>App</title></head><body><noscript>Please enable JavaScript.</noscript><div id=root></div>"
    "<script>document.getElementById('root').innerHTML = '<main><h1>Made here</h1><p>' + 'by a script. '.repeat(30) +"
    " '</p></main>'</script></body></html>"
)


async def test_a_page_is_read_as_markdown_with_what_is_known_of_it(host: WebHost) -> None:
    async with site(pages({"/": reply(200, ARTICLE.encode(), HTML)})) as here:
        text = await host.fetch(f"http://ok.test:{here.port}/")
    assert text.startswith(f"[http://ok.test:{here.port}/, ")
    assert "Mira Vell\n\n# Bread\n" in text
    assert text.count("# Bread") == 1
    assert "Flour, water and salt." in text
    assert f"[Salt](http://ok.test:{here.port}/salt)" in text
    assert "Imprint" not in text
    assert "Home" not in text


async def test_it_looks_like_a_browser_and_says_which_tier_it_was(host: WebHost) -> None:
    async def picky(seen: Seen, writer: asyncio.StreamWriter) -> None:
        likely = "Mozilla" in seen.headers.get("user-agent", "") and "sec-ch-ua" in seen.headers
        fine = likely and "text/html" in seen.headers.get("accept", "")
        writer.write(reply(200, ARTICLE.encode(), HTML) if fine else reply(403, b"go away"))

    async with site(picky) as here:
        text = await host.fetch(f"http://ok.test:{here.port}/")
    assert "Flour" in text
    assert "browser" in text.splitlines()[0]


@needs_chromium
async def test_a_page_made_by_javascript_is_rendered(host: WebHost) -> None:
    pytest.importorskip("playwright", reason="pip install 'operant[browser]'")
    async with site(pages({"/": reply(200, SHELL.encode(), HTML)})) as here:
        url = f"http://ok.test:{here.port}/"
        text = await host.fetch(url)
        never = await host.fetch(url, render="never")
    assert "Made here" in text
    assert "browser with JavaScript, because it is made by JavaScript" in text.splitlines()[0]
    assert "Made here" not in never


@needs_chromium
async def test_a_site_that_takes_us_for_a_robot_is_read_in_stealth(host: WebHost) -> None:
    pytest.importorskip("playwright", reason="pip install 'operant[browser]'")
    check = (
        "<html><body><div id=root></div><script>const ok = !navigator.webdriver && !/Headless/.test(navigator.userAgent)"  # noqa: E501
        ";document.getElementById('root').innerHTML = ok ? '<main><h1>Welcome</h1>' + '<p>words</p>'.repeat(90)"
        " + '</main>' : 'captcha'</script></body></html>"
    )

    async def guarded(seen: Seen, writer: asyncio.StreamWriter) -> None:
        first = not asked
        asked.append(seen.target)
        writer.write(
            reply(403, b"<html>Just a moment... captcha</html>", HTML) if first else reply(200, check.encode(), HTML)
        )

    asked: list[str] = []
    async with site(guarded) as here:
        text = await host.fetch(f"http://ok.test:{here.port}/")
    assert "Welcome" in text
    assert "stealth browser, because it asks for proof of a human" in text.splitlines()[0]


@needs_chromium
async def test_f6_the_browser_reaches_nothing_private(host: WebHost) -> None:
    pytest.importorskip("playwright", reason="pip install 'operant[browser]'")
    async with site(pages({"/": reply(200, b"CANARY", HTML)}), PRIVATE) as inner:
        inside = f"http://127.0.0.1:{inner.port}/"
        evil = (
            f"<html><body><h1>Hello</h1><iframe src='{inside}'></iframe><img src='http://localhost:{inner.port}/'>"
            f"<script>fetch('{inside}').catch(()=>0); new WebSocket('ws://127.0.0.1:{inner.port}/');</script></body></html>"
        )
        moved = f"<html><head><meta http-equiv=refresh content='0;url={inside}'></head><body>wait</body></html>"
        found = {"/": reply(200, evil.encode(), HTML), "/moved": reply(200, moved.encode(), HTML)}
        async with site(pages(found)) as here:
            text = await host.fetch(f"http://ok.test:{here.port}/", render="always")
            away = await host.fetch(f"http://ok.test:{here.port}/moved", render="always")
            direct = await host.fetch(inside, render="always")
    assert "Hello" in text
    assert inner.seen == []
    assert "CANARY" not in text + away + direct


async def test_f1_what_is_private_is_refused_in_words(host: WebHost) -> None:
    for url in ("http://127.0.0.1:1/", "http://localhost:1/", "http://169.254.169.254/latest", "file:///etc/passwd"):
        result = await host.call("web_fetch", url=url)
        assert result.outcome == "error"
        assert result.labels == ()


@pytest.mark.parametrize(("status", "words"), [(404, "not found"), (410, "gone"), (500, "server error")])
async def test_what_is_not_there_is_said(host: WebHost, status: int, words: str) -> None:
    async with site(pages({"/": reply(status, b"x", HTML)})) as here:
        text = await host.fetch(f"http://ok.test:{here.port}/")
    assert words in text


async def test_a_long_page_is_paged_and_fetched_once(host: WebHost) -> None:
    body = "<html><body><main>" + "".join(f"<p>line {at} of many</p>" for at in range(900)) + "</main></body></html>"
    async with site(pages({"/": reply(200, body.encode(), HTML)})) as here:
        url = f"http://ok.test:{here.port}/"
        first = await host.fetch(url, room=4000)
        offset = int(first.rpartition("offset=")[2].rstrip("]"))
        second = await host.fetch(url, room=4000, offset=offset)
    assert len(here.seen) == 1
    whole = first.split("]\n", 1)[1].rpartition("\n[more")[0] + second.split("]\n", 1)[1].rpartition("\n[more")[0]
    assert "line 0 of many" in whole
    assert whole.count("line 100 of many") == 1


async def test_json_feeds_text_pictures_and_foreign_bytes(host: WebHost) -> None:
    rss = (
        b"<?xml version='1.0'?><rss version='2.0'><channel><title>News</title><item><title>One</title>"
        b"<link>/one</link><pubDate>Fri, 20 Nov 2026</pubDate><description>&lt;p&gt;Words&lt;/p&gt;</description>"
        b"</item></channel></rss>"
    )
    found = {
        "/json": reply(200, b'{"a":[1,2]}', {"Content-Type": "application/json"}),
        "/feed": reply(200, rss, {"Content-Type": "application/rss+xml"}),
        "/text": reply(200, "Grüße".encode("latin-1"), {"Content-Type": "text/plain; charset=latin-1"}),
        "/png": reply(200, b"\x89PNG\r\n\x1a\n...", {"Content-Type": "image/png"}),
        "/bin": reply(200, b"\0\1\2", {"Content-Type": "application/octet-stream"}),
        "/bomb": reply(
            200, gzip.compress(b"0" * 30_000_000), {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
        ),
    }
    async with site(pages(found)) as here:
        base = f"http://ok.test:{here.port}"
        assert '"a": [' in await host.fetch(f"{base}/json")
        assert f"[One]({base}/one) Fri, 20 Nov 2026\n  Words" in await host.fetch(f"{base}/feed")
        assert "Grüße" in await host.fetch(f"{base}/text")
        picture = await host.call("web_fetch", url=f"{base}/png")
        assert any(isinstance(part, BlobRef) and part.media_type == "image/png" for part in picture.parts)
        assert "not text" in await host.fetch(f"{base}/bin")
        assert "5,000,000 characters" in await host.fetch(f"{base}/bomb")


async def test_a_pdf_is_read(host: WebHost) -> None:
    from tests.kit.papers import pdf

    async with site(
        pages({"/a.pdf": reply(200, pdf("Hello from a page"), {"Content-Type": "application/pdf"})})
    ) as here:
        assert "Hello from a page" in await host.fetch(f"http://ok.test:{here.port}/a.pdf")


async def test_links_are_listed_when_asked_for(host: WebHost) -> None:
    async with site(pages({"/": reply(200, ARTICLE.encode(), HTML)})) as here:
        text = await host.fetch(f"http://ok.test:{here.port}/", links=True)
    assert f"## Links\n- [Salt](http://ok.test:{here.port}/salt)" in text


async def test_what_was_read_is_from_outside(host: WebHost) -> None:
    async with site(pages({"/": reply(200, ARTICLE.encode(), HTML)})) as here:
        assert (await host.call("web_fetch", url=f"http://ok.test:{here.port}/")).labels == ("outside",)


async def test_without_a_browser_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with web(tmp_path, WebSettings()) as host, site(pages({"/": reply(200, SHELL.encode(), HTML)})) as here:
        text = await host.fetch(f"http://ok.test:{here.port}/")
        always = await host.fetch(f"http://ok.test:{here.port}/", render="always")
    assert "install Chromium" in text
    assert "install Chromium" in always


async def test_a_hostile_page_hurts_nobody(host: WebHost) -> None:
    deep = "<div>" * 200_000 + "words at the bottom" + "<table>" * 20_000
    async with site(pages({"/": reply(200, deep.encode(), HTML)})) as here:
        async with asyncio.timeout(30):
            text = await host.fetch(f"http://ok.test:{here.port}/", render="never")
    assert "words at the bottom" in text or "cannot be read" in text
