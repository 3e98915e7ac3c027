"""F6: whatever a page in Chromium does, it passes the proxy, and what is private stays out of its reach."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from operant.kit.proxy import Proxy, Verdict
from tests.kit.web import PRIVATE, PUBLIC, egress, pages, reply, site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

PAGE = b"""<html><body>page
<iframe src="http://127.0.0.1:PORT/frame"></iframe>
<img src="http://localhost:PORT/image">
<script>
fetch("http://[::1]:PORT/fetch").catch(() => 0);
fetch("http://10.0.0.1:PORT/fetch").catch(() => 0);
fetch("/moved").catch(() => 0);
new WebSocket("ws://127.0.0.2:PORT/socket");
</script></body></html>"""


async def browse(url: str, proxy: int, profile: Path) -> str:
    assert CHROMIUM
    program = await asyncio.create_subprocess_exec(
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--no-first-run",
        f"--proxy-server=http://127.0.0.1:{proxy}", "--proxy-bypass-list=<-loopback>",
        "--disable-background-networking", "--virtual-time-budget=3000", "--dump-dom", url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        said, _ = await asyncio.wait_for(program.communicate(), 30)
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    return said.decode()


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: apt install chromium")
async def test_f6_a_page_reaches_nothing_private_by_frame_image_fetch_redirect_or_socket(tmp_path: Path) -> None:
    verdicts: list[Verdict] = []
    async with site(pages({}), PRIVATE) as inner:
        found = {
            "/": reply(302, headers={"Location": "/page"}),
            "/page": reply(200, PAGE.replace(b"PORT", str(inner.port).encode()), {"Content-Type": "text/html"}),
            "/moved": reply(302, headers={"Location": f"http://127.1:{inner.port}/moved"}),
            "/away": reply(302, headers={"Location": f"http://0x7f.1:{inner.port}/away"}),
        }
        way = egress(ok_test=[PUBLIC], localhost=[PRIVATE])
        async with site(pages(found)) as here, Proxy(way, on_verdict=verdicts.append).serving_tcp() as port:
            dom = await browse(f"http://ok.test:{here.port}/", port, tmp_path / "one")
            refused = await browse(f"http://ok.test:{here.port}/away", port, tmp_path / "two")
    assert "page" in dom
    assert "is not dialled: this machine" in refused
    assert inner.seen == []
    assert {"/page", "/moved"} <= set(here.targets)
    denied = {one.host for one in verdicts if one.port == inner.port and not one.allowed}
    assert denied == {"127.0.0.1", "localhost", "::1", "10.0.0.1"}
    assert PUBLIC in {one.host for one in verdicts if one.port == inner.port and one.allowed}
