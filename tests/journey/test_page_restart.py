"""The daemon is killed in the middle of a stream, with the page open: the answer completes on screen, once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from operant.sdk.testing.server import ScriptedServer
from tests.journey.browser import browsing, needs_browser

pytestmark = [needs_browser, pytest.mark.slow, pytest.mark.crash, pytest.mark.xdist_group("browser")]

SCRIPT: dict[str, Any] = {
    "story": [{"text": "one two three four five six seven eight nine ten", "chunks": 10, "chunk_delay_ms": 250}],
    "flood": [
        {
            "calls": [
                {"name": "shell", "arguments": {"command": "timeout 4 yes 0123456789012345678901234567890123456789"}}
            ]
        },
        {"text": "It is over."},
    ],
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@asynccontextmanager
async def daemon(home: Path, port: int) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run `operant serve` in a process of its own; yield it and a login link."""
    env = {"PATH": os.environ["PATH"], "OPERANT_HOME": str(home)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "operant", "serve", "--port", str(port), stdout=asyncio.subprocess.PIPE, env=env
    )
    try:
        assert process.stdout
        async with asyncio.timeout(20):
            while b"is ready" not in await process.stdout.readline():
                assert process.returncode is None
        opened = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "operant", "open", "--print", stdout=asyncio.subprocess.PIPE, env=env
        )
        said, _ = await opened.communicate()
        yield process, said.decode().split()[0]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def set_up(home: Path, server: ScriptedServer) -> None:
    home.mkdir(mode=0o700)
    config = {
        "defaults": {"models": ["scripted/one"]},
        "agents": {"operant": {"approval": {"*": "allow"}}},
        "providers": {"scripted": {"base_url": server.url, "protocol": "openai"}},
    }
    (home / "operant.yaml").write_text(yaml.safe_dump(config))


async def free_port() -> int:
    listening = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    return port


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_the_answer_completes_on_screen_once(tmp_path: Path, server: ScriptedServer, how: signal.Signals) -> None:
    home, port = tmp_path / "home", await free_port()
    set_up(home, server)
    async with daemon(home, port) as (first, link), browsing(link) as page:
        page.expected += ["WebSocket", "ERR_CONNECTION", "Failed to load resource"]
        view = page.page
        await page.say("@story please")
        await view.get_by_text("three").wait_for()
        first.send_signal(how)
        await view.get_by_text("The connection is lost").wait_for()
        await page.picture(f"lost-{how.name}")
        await page.say("@story again")  # kept until somebody takes it
        await first.wait()
        async with daemon(home, port):
            await view.get_by_text("The connection is lost").wait_for(state="detached")
            # The second message joins the first turn where that still runs, or has a turn of its own.
            await view.locator(".answer").nth(1).get_by_text("ten").wait_for(timeout=30_000)
            await view.locator(".turn-foot").last.wait_for()
            answers = await view.locator(".answer").all_inner_texts()
            assert [answer.strip() for answer in answers] == [SCRIPT["story"][0]["text"]] * 2
            assert await view.locator(".said").count() == 2
            await view.reload()
            await view.locator(".answer").nth(1).wait_for()
            assert await view.locator(".answer").count() == 2


async def test_a_flood_of_output_leaves_the_page_usable(
    tmp_path: Path, server: ScriptedServer, record_property: Any
) -> None:
    """Ten MB a second and more: no task of the page is long, and what it keeps has an end."""
    home, port = tmp_path / "home", await free_port()
    set_up(home, server)
    async with daemon(home, port) as (_, link), browsing(link) as page:
        view = page.page
        await view.get_by_label("Message", exact=True).wait_for()
        await view.evaluate("""() => {
          window.longest = 0;
          const note = (one) => { window.longest = Math.max(window.longest, one.duration); };
          new PerformanceObserver((list) => list.getEntries().forEach(note)).observe({ type: "longtask" });
        }""")
        await page.say("@flood go")
        await view.locator(".output.live").get_by_text("0123456789").wait_for()
        await view.get_by_role("button", name="Deep work").click()  # the page answers meanwhile
        await view.locator('[aria-pressed="true"][aria-label="Deep work"]').wait_for()
        await view.get_by_text("It is over.").wait_for(timeout=30_000)
        kept = await view.evaluate("document.querySelector('.turn').textContent.length")
        longest = await view.evaluate("window.longest")
        record_property("longest_task_ms", longest)  # a figure, not a condition: see docs/reference/performance.md
        assert kept < 200_000
