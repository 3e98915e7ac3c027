"""The page beside sessions: looking, managing, finding one's way, on every width and in both themes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.journey.browser import Watched, browsing, needs_browser, stumbles
from tests.journey.gateway import Served, served

pytestmark = [needs_browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

SCRIPT: dict[str, Any] = {
    "work": [
        {"reasoning": "First I look.", "calls": [{"name": "list_files", "arguments": {}}]},
        {"calls": [{"name": "write_file", "arguments": {"path": "notes.md", "content": "# Notes\n\nOne.\n"}}]},
        {"text": "I looked around and wrote `notes.md`.\n\n```python\nprint('hello')\n```"},
    ],
    "quick": [{"text": "Quick answer."}],
}
VIEWS = (
    "activity", "usage", "approvals", "agents", "agents/operant", "skills", "skills/summarize", "services", "tools",
    "tools/shell", "models", "system",
)  # fmt: skip


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Served]:
    server = ScriptedServer(SCRIPT)
    more: dict[str, object] = {"agents": {"operant": {"approval": {"write_file": "allow", "shell": "ask"}}}}
    async with server.serving(), served(tmp_path / "home", server, more) as made:
        await made.post("/api/chat/first", {"message": "@work please, and say what you found"})
        await made.post("/api/chat/second", {"message": "@quick one"})
        yield made


@pytest.fixture
async def page(house: Served) -> AsyncIterator[Watched]:
    async with browsing(f"{house.url}/#login={await house.login_code()}") as watched:
        await watched.page.get_by_label("Message", exact=True).wait_for()
        yield watched


async def settled(view: Any) -> None:
    """Wait until nothing loads."""
    await view.wait_for_load_state("networkidle")
    await view.wait_for_function("() => !document.querySelector('.loading')")


@pytest.mark.parametrize("width", [360, 1280, 1920])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_every_view_can_be_read_by_everybody(house: Served, width: int, dark: bool) -> None:
    link = f"{house.url}/#login={await house.login_code()}"
    turn = (await house.get("/api/sessions/first/turns"))["turns"][0]["turn"]
    height = 780 if width == 360 else 1000
    async with browsing(link, width=width, height=height, dark=dark) as page:
        await page.page.get_by_label("Message", exact=True).wait_for()
        for place in ("new", "s/first", "trace/first", f"trace/first/{turn}", *VIEWS):
            await page.go(place)
            await settled(page.page)
            name = place.replace(turn, "turn").replace("/", "-")
            await page.picture(f"{name}-{width}-{'dark' if dark else 'light'}")
            assert not await stumbles(page.page), place
            wider = await page.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, f"{place} is wider than the screen by {wider} px"


async def test_a_trace_shows_steps_and_what_they_added(page: Watched, house: Served) -> None:
    view = page.page
    await page.go("s/first")
    await view.get_by_role("link", name="Trace of this turn").click()
    await view.get_by_role("heading", name="Trace").wait_for()
    spans = view.get_by_role("list", name="Timeline").get_by_role("listitem")
    await spans.nth(4).wait_for()
    assert await spans.count() == 5
    await view.get_by_text("opened for the first time").wait_for()
    await spans.nth(2).get_by_role("button").click()
    await view.locator(".added .tag", has_text="tool · list_files").wait_for()
    await spans.nth(3).get_by_role("button").click()
    await view.locator(".span-detail .diff", has_text="notes.md").wait_for()
    facts = await view.locator(".facts").first.inner_text()
    assert "Cached" in facts
    files = {one["name"]: one for one in await house.get("/api/agents/operant/prompt")}
    place = f"{house.url}/api/agents/operant/prompt/SOUL.md"
    async with house.http.put(place, json={"text": "Be brief.", "digest": files["SOUL.md"].get("digest", "")}):
        pass
    turn = (await house.post("/api/chat/first", {"message": "@quick more"}))["turn"]
    await page.go(f"trace/first/{turn}")
    await view.locator(".span-detail .line-plus", has_text="Be brief.").wait_for()


async def test_usage_has_charts_and_figures(page: Watched) -> None:
    view = page.page
    await page.go("usage")
    await view.get_by_role("region", name="Models").get_by_text("scripted/one").wait_for()
    for kind in ("Cost", "Cached share", "Tokens"):
        await view.get_by_role("radio", name=kind).click()
        assert await view.locator(".chart rect").count() > 0
    await view.get_by_role("radio", name="30 days").click()
    await view.get_by_role("region", name="Sessions").get_by_role("link").first.click()
    await view.get_by_label("Conversation").wait_for()


async def test_activity_is_live(page: Watched, house: Served) -> None:
    view = page.page
    await page.go("activity")
    await view.get_by_text("@quick one").wait_for()
    await house.post("/api/chat/third", {"message": "@quick another"})
    await view.locator(".activity").get_by_text("@quick another").wait_for()
    await view.get_by_role("radio", name="Tools").click()
    assert await view.locator(".activity").get_by_text("@quick").count() == 0
    await view.locator(".activity").get_by_text("write_file").first.wait_for()


async def test_prompt_files_are_edited_and_rights_are_not(page: Watched, house: Served) -> None:
    view = page.page
    await page.go("agents/operant")
    soul = view.locator(".file-edit", has_text="SOUL.md")
    await soul.locator("summary").click()
    await soul.get_by_label("SOUL.md").fill("Be kind.\n")
    await soul.get_by_role("button", name="Save").click()
    await view.get_by_text("SOUL.md is saved").wait_for()
    files = {one["name"]: one for one in await house.get("/api/agents/operant/prompt")}
    assert files["SOUL.md"]["text"] == "Be kind.\n"
    page.expected.append("403")
    own = view.locator(".file-edit", has_text="AGENT.md")
    await own.get_by_label("AGENT.md").fill("---\nsandbox: false\n---\nDo it all.\n")
    await own.get_by_role("button", name="Save").click()
    await own.get_by_role("alert").get_by_text("no call may change it").wait_for()


async def test_an_agent_is_made_and_put_aside(page: Watched) -> None:
    view = page.page
    await page.go("agents")
    await view.get_by_role("button", name="New agent").click()
    await view.get_by_label("Name (small letters").fill("helper")
    await view.keyboard.press("Enter")
    await view.get_by_role("heading", name="helper").wait_for()
    await view.get_by_role("button", name="Remove").click()
    await view.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await view.get_by_text("Its files are in").wait_for()


async def test_a_tool_is_tried_by_a_form(page: Watched) -> None:
    view = page.page
    await page.go("tools")
    await view.get_by_role("searchbox").last.fill("read_file")
    await view.get_by_role("link", name="read_file").first.click()
    await view.get_by_label("path").fill("notes.md")
    await view.get_by_role("button", name="Run").click()
    await view.locator(".code").get_by_text("# Notes").wait_for()
    await page.picture("tool-trial")


async def test_models_are_switched_and_tried(page: Watched, house: Served) -> None:
    view = page.page
    await page.go("models")
    providers = view.get_by_role("region", name="All providers")
    await providers.get_by_text("missing").first.wait_for()
    await view.get_by_role("searchbox", name="Words of a name").fill("sonnet")
    await view.get_by_role("button", name="Search").last.click()
    found = view.get_by_role("region", name="Models found").get_by_role("row", name="anthropic/").first
    assert await found.get_by_role("button", name="Use").is_disabled()
    in_use = view.get_by_role("region", name="Models in use")
    await in_use.get_by_role("button", name="Use").first.click()
    await view.get_by_text("scripted/one answers from now on").wait_for()
    assert "was chosen" in (await house.get("/api/models"))["pinned"][0]["why"]
    await view.get_by_role("button", name="Give the choice back").click()
    await view.get_by_text("The choice is given back").wait_for()
    row = in_use.get_by_role("row", name="scripted/one")
    await row.get_by_role("button", name="Test").click()
    await view.locator(".trials li").first.wait_for()


async def test_the_system_shows_checks_log_and_tokens(page: Watched, house: Served) -> None:
    view = page.page
    await page.go("system")
    await view.locator(".checks").get_by_text("structure").wait_for()
    await view.get_by_role("radio", name="Log").click()
    await view.get_by_text("listening on").wait_for()
    await view.get_by_role("radio", name="Access").click()
    await view.get_by_role("button", name="New token").click()
    await view.get_by_label("Name").fill("script")
    await view.get_by_role("button", name="Make it").click()
    token = await view.locator("dialog .command code").inner_text()
    await page.picture("token")
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        async with http.get(f"{house.url}/api/status") as response:
            assert response.status == 200
        await view.get_by_role("button", name="Done").click()
        await view.get_by_role("row", name="script").get_by_role("button", name="Revoke").click()
        await view.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await view.get_by_role("row", name="script").wait_for(state="detached")
        async with http.get(f"{house.url}/api/status") as response:
            assert response.status == 401
    page.expected.append("401")
    await view.get_by_role("button", name="Log out").click()
    await view.get_by_text("This browser is not logged in").wait_for()


async def test_the_keyboard_reaches_everything(page: Watched) -> None:
    view = page.page
    await view.keyboard.press("Control+k")
    palette = view.get_by_role("dialog", name="Commands")
    await palette.get_by_role("combobox").fill("usage")
    await page.picture("palette")
    await view.keyboard.press("Enter")
    await view.get_by_role("heading", name="Usage").wait_for()
    await view.keyboard.press("Control+k")
    await palette.get_by_role("combobox").fill("theme dark")
    await view.keyboard.press("Enter")
    assert await view.evaluate("document.documentElement.dataset.theme") == "dark"
    await view.keyboard.press("Control+Shift+o")
    await view.get_by_text("What shall be done?").wait_for()
    await view.get_by_role("main").focus()
    await view.keyboard.press("/")
    await view.get_by_role("listbox", name="Commands").get_by_text("/stop").wait_for()
    await page.picture("slash")
    await view.keyboard.type("he")
    await view.keyboard.press("Enter")
    await palette.wait_for()
    await view.keyboard.press("Escape")
    await palette.wait_for(state="detached")


async def test_a_telephone_opens_the_list_as_a_drawer(house: Served) -> None:
    link = f"{house.url}/#login={await house.login_code()}"
    async with browsing(link, width=360, height=740) as page:
        view = page.page
        await view.get_by_role("button", name="Open the menu").click()
        await page.picture("drawer-360")
        await view.get_by_role("list", name="Sessions").get_by_text("@quick one").click()
        await view.get_by_text("Quick answer.").wait_for()
        assert not await view.locator(".sidebar.open").count()


async def test_the_page_uses_only_what_everybody_may_use(page: Watched, house: Served) -> None:
    for place in ("s/first", "trace/first", *VIEWS):
        await page.go(place)
        await settled(page.page)
    document = await house.get("/openapi.json")
    known = [path.split("/") for path in document["paths"]]
    for asked in page.asked:
        path = asked.partition(" ")[2].removeprefix(house.url).partition("?")[0].partition("#")[0].split("/")
        if path[1] in ("", "page", "favicon.ico"):
            continue
        fits = [
            one
            for one in known
            if len(one) == len(path) and all(a == b or a.startswith("{") for a, b in zip(one, path, strict=True))
        ]
        assert fits, asked


async def test_the_page_is_small_and_wants_nothing_from_elsewhere(house: Served) -> None:
    async with house.http.get(house.url + "/") as response:
        policy = response.headers["Content-Security-Policy"]
        html = await response.text()
    assert "default-src 'self'" in policy and "unsafe" not in policy
    assert "http://" not in html and "https://" not in html and "<style" not in html
    assert html.count("<script") == html.count('<script type="module" src="/page/') == 1
