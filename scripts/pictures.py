"""Take the pictures of the page that the documentation shows: the real page, the real gateway, a scripted model."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from operant.sdk.testing.server import ScriptedServer  # noqa: E402
from tests.journey.browser import browsing  # noqa: E402
from tests.journey.gateway import Served, served  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SCRIPT: dict[str, Any] = {
    "report": [
        {"reasoning": "I look at what is there first.", "calls": [{"name": "list_files", "arguments": {}}]},
        {"calls": [{"name": "read_file", "arguments": {"path": "sales.csv"}}]},
        {
            "calls": [
                {
                    "name": "edit_file",
                    "arguments": {
                        "path": "report.md",
                        "old": "Total: unknown",
                        "new": "Total: 1,284 units, 7 % more than in October",
                    },
                }
            ]
        },
        {
            "text": "The report is up to date. November has **1,284 units**, 7 % more than October:\n\n"
            "| region | October | November |\n|---|---:|---:|\n| north | 510 | 548 |\n| south | 690 | 736 |\n\n"
            "I left the old figures in the table, so that you can check them."
        },
    ],
    "send": [{"calls": [{"name": "shell", "arguments": {"command": "git add -A && git commit -m 'November report'"}}]}],
    "quick": [{"text": "Done."}],
}


async def main() -> None:
    """Take them all."""
    server = ScriptedServer(SCRIPT)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        more: dict[str, object] = {"agents": {"operant": {"approval": {"edit_file": "allow", "shell": "ask"}}}}
        async with server.serving(), served(home, server, more) as house:
            workspace = home / "agents" / "operant" / "workspace"
            (workspace / "sales.csv").write_text("region,october,november\nnorth,510,548\nsouth,690,736\n")
            (workspace / "report.md").write_text("# November\n\nTotal: unknown\n")
            await _sessions(house)
            await _take(house)


async def _sessions(house: Served) -> None:
    for key, title in (("a", "Tidy up the downloads"), ("b", "Compare three laptops"), ("c", "Why is the build slow?")):
        await house.post(f"/api/chat/{key}", {"message": "@quick"})
        async with house.http.patch(f"{house.url}/api/sessions/{key}", json={"title": title}):
            pass
    await house.post("/api/chat/report", {"message": "Bring the sales report up to date, please. @report"})
    async with house.http.patch(f"{house.url}/api/sessions/report", json={"title": "Sales report for November"}):
        pass
    async with house.http.post(
        f"{house.url}/api/chat/report", json={"message": "Good. Commit it. @send"}, headers={"Prefer": "respond-async"}
    ):
        pass


async def _take(house: Served) -> None:
    turn = (await house.get("/api/sessions/report/turns"))["turns"][0]["turn"]
    for name, place, width, height, dark in (
        ("page-light", "s/report", 1280, 940, False),
        ("page-dark", "s/report", 1280, 940, True),
        ("page-phone", "s/report", 360, 780, False),
        ("page-trace", f"trace/report/{turn}", 1280, 760, False),
    ):
        link = f"{house.url}/#login={await house.login_code()}"
        async with browsing(link, width=width, height=height, dark=dark) as page:
            await page.page.get_by_label("Message", exact=True).wait_for()
            await page.go(place)
            await page.page.locator(".approval, .span-detail").first.wait_for()
            await page.page.wait_for_load_state("networkidle")
            await page.page.screenshot(path=IMAGES / f"{name}.png", animations="disabled", caret="hide")
            print(f"docs/images/{name}.png")


if __name__ == "__main__":
    asyncio.run(main())
