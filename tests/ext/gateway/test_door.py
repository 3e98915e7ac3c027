"""What the attacks on the wire (test_attacks_*.py) leave over: the page's own addresses, and links in a workspace."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import Served, served

CANARY = "CANARY-5f0c9a"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path / "home", ScriptedServer()) as made:
        (tmp_path / "canary.txt").write_text(CANARY)
        yield made


async def test_a6_the_page_takes_no_address_from_its_own(house: Served) -> None:
    """No module reads an address to connect to: only paths below where the page came from."""
    script = re.compile(r"/page/[\w/.-]+\.js")
    pending, seen = ["/page/app.js"], set[str]()
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        async with house.http.get(house.url + path) as response:
            text = await response.text()
        folder = path.rpartition("/")[0]
        for found in re.findall(r"from \"(\.[\w/.-]+)\"", text):
            pending.append(os.path.normpath(f"{folder}/{found}"))
        assert "location.search" not in text and "gatewayUrl" not in text
    assert len(seen) > 20 and all(script.fullmatch(path) for path in seen)


async def test_a15_links_in_the_workspace_lead_nowhere(house: Served, tmp_path: Path) -> None:
    workspace = tmp_path / "home" / "agents" / "operant" / "workspace"
    (workspace / "link.txt").symlink_to(tmp_path / "canary.txt")
    (workspace / "up").symlink_to(tmp_path)
    for path in ("link.txt", "up/canary.txt"):
        async with house.http.get(f"{house.url}/api/agents/operant/files/{path}") as response:
            assert response.status == 404
            assert CANARY not in await response.text()
