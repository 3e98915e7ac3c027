"""Folders are seen by themselves: dropped in, edited, taken away, in a daemon."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from operant.kernel.syscalls import ServiceList
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import GUARD, House, write_skill
from tests.journey.gateway import served

CONFIG: dict[str, object] = {
    "agents": {"operant": {"approval": {"shell": "allow"}}},
    "services": {"trusted": ["guard", "own@operant"]},
}


async def test_a_folder_that_is_dropped_in_edited_and_taken_away_counts_by_itself(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    async with served(home, server, CONFIG) as made:
        there = House(made.system)
        assert "bad" in await there.shell("echo bad")
        write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="first")})
        await _found(there, "guard")
        await there.until("guard", lambda one: one.state == "running")
        assert "first" in await there.shell("echo bad")
        write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="second")})
        await there.newer("guard", 1)
        assert "second" in await there.shell("echo bad")
        shutil.rmtree(home / "skills" / "guard")
        async with asyncio.timeout(20):
            while await there.call(ServiceList()):
                await asyncio.sleep(0)
        assert "bad" in await there.shell("echo bad")


async def test_an_agent_s_first_skill_is_found_and_is_for_this_agent_alone(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    async with served(home, server, CONFIG) as made:
        there = House(made.system)
        (home / "agents" / "other" / "workspace").mkdir(parents=True)
        (home / "agents" / "other" / "AGENT.md").write_text("---\napproval: {shell: allow}\n---\nYou help.\n")
        text = GUARD.format(word="bad", reason="not mine")
        write_skill(home, "own", {"service.py": text}, below="agents/operant/workspace/skills")
        await _found(there, "own@operant")
        info = await there.until("own@operant", lambda one: one.state == "running")
        assert info.agent == "operant"
        assert "not mine" in await there.shell("echo bad")
        assert "bad" in await there.tool("shell", agent="other", command="echo bad")


async def _found(there: House, name: str) -> None:
    async with asyncio.timeout(20):
        while name not in {one.name for one in await there.call(ServiceList())}:
            await asyncio.sleep(0)
