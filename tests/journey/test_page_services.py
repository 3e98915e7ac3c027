"""Services on the page: seen, allowed for what they are, stopped, started, read, and taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import GUARD, write_skill
from tests.journey.browser import Watched, browsing, needs_browser, stumbles
from tests.journey.gateway import Served, served

pytestmark = [needs_browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

NAME = "gate-keeper"
LOUD = GUARD.format(word="forbidden", reason="not here") + '\nprint("<b>I watch</b> \\u202e what is run", flush=True)\n'


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Served]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    write_skill(home, NAME, {"service.py": LOUD}, hooks="tool.before", grants="session.read", network="example.com")
    write_skill(home, "free-runner", {"service.py": LOUD}, sandbox="off")
    agents = {"operant": {"approval": {"shell": "allow"}}}
    server = ScriptedServer()
    async with server.serving(), served(home, server, {"agents": agents}) as made:
        yield made


@pytest.fixture
async def page(house: Served) -> AsyncIterator[Watched]:
    async with browsing(f"{house.url}/#login={await house.login_code()}") as watched:
        await watched.page.get_by_label("Message", exact=True).wait_for()
        yield watched


async def state_of(house: Served, name: str) -> str:
    return next(one["state"] for one in await house.get("/api/services") if one["name"] == name)


async def test_a_service_is_allowed_stopped_and_taken_back(page: Watched, house: Served) -> None:
    view = page.page
    await view.get_by_role("link", name="Services").click()
    row = view.get_by_role("region", name="All services").get_by_role("row", name=NAME)
    await row.get_by_text("not allowed").wait_for()
    await row.get_by_role("link").click()
    await view.get_by_role("button", name="Allow…").click()
    asked = view.get_by_role("dialog", name=f"Let {NAME} run?")
    (found,) = [one for one in await house.get("/api/services") if one["name"] == NAME]
    for words in (found["digest"], found["command"], "in the sandbox", "tool.before", "session.read", "example.com"):
        await asked.get_by_text(words, exact=True).wait_for()
    await page.picture("service-grant")
    assert not await stumbles(view)
    await asked.get_by_role("button", name="Cancel").click()
    assert await state_of(house, NAME) == "ungranted"

    await view.get_by_role("button", name="Allow…").click()
    await asked.get_by_role("button", name="Allow").click()
    await view.get_by_text(f"{NAME} may run.").wait_for()
    await view.locator(".tag.good", has_text="running").wait_for()
    log = view.get_by_role("log", name="Log of the service")
    await log.get_by_text("<b>I watch</b> ").wait_for()
    assert "\u202e" not in await log.inner_text()
    await page.picture("service-running")

    await view.get_by_role("main").get_by_role("link", name=NAME).click()
    await view.get_by_role("heading", name="Instructions").wait_for()
    await view.get_by_role("main").get_by_text("running").wait_for()
    await view.get_by_role("main").get_by_role("link", name=NAME).click()

    await view.get_by_role("button", name="Stop", exact=True).click()
    await view.get_by_role("dialog").get_by_text("guards nothing").wait_for()
    await view.get_by_role("dialog").get_by_role("button", name="Stop").click()
    await view.locator(".tag", has_text="stopped").wait_for()
    assert await state_of(house, NAME) == "stopped"
    await view.get_by_role("button", name="Start", exact=True).click()
    await view.locator(".tag.good", has_text="running").wait_for()
    await view.get_by_role("button", name="Take back").click()
    await view.get_by_role("dialog").get_by_role("button", name="Take back").click()
    await view.locator(".tag.warn", has_text="not allowed").wait_for()
    assert await state_of(house, NAME) == "ungranted"


async def test_what_has_changed_meanwhile_is_not_allowed(page: Watched, house: Served, tmp_path: Path) -> None:
    view = page.page
    page.expected.append("409")
    await page.go(f"services/{NAME}")
    await view.get_by_role("button", name="Allow…").click()
    asked = view.get_by_role("dialog", name=f"Let {NAME} run?")
    await asked.wait_for()
    (tmp_path / "home" / "skills" / NAME / "service.py").write_text(LOUD + "# and more\n")
    await asked.get_by_role("button", name="Allow").click()
    await view.get_by_role("alert").wait_for()
    assert await state_of(house, NAME) == "ungranted"


async def test_one_that_leaves_the_sandbox_is_marked(page: Watched) -> None:
    view = page.page
    await page.go("services/free-runner")
    await view.get_by_role("button", name="Allow…").click()
    await view.get_by_role("dialog").get_by_text("it can do all that you can do").wait_for()
    await page.picture("service-grant-unsafe")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_services_can_be_read_by_everybody(house: Served, width: int, dark: bool) -> None:
    link = f"{house.url}/#login={await house.login_code()}"
    async with browsing(link, width=width, height=900, dark=dark) as page:
        await page.page.get_by_label("Message", exact=True).wait_for()
        shown = {"services": "All services", f"services/{NAME}": "What it asks for", "services/nobody": "Not there"}
        for place, words in shown.items():
            await page.go(place)
            await page.page.get_by_label(words).or_(page.page.get_by_role("heading", name=words)).first.wait_for()
            await page.page.wait_for_function("() => !document.querySelector('.loading')")
            await page.picture(f"{place.replace('/', '-')}-{width}-{'dark' if dark else 'light'}")
            assert not await stumbles(page.page), place
            wider = await page.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, f"{place} is wider than the screen by {wider} px"
