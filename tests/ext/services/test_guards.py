"""A guard in another process: what the first AgentOS showed, and what must hold when it is killed or replaced."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from operant.kernel.syscalls import ServiceGrant, ServiceRevoke, SkillReload, SkillStart, SkillStop
from operant.sdk import Conflict
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import GUARD, house, processes, write_skill

SEED = Path(__file__).parent / "my-guard"


async def test_the_seed_s_guard_runs_byte_for_byte_and_blocks_its_three_patterns(
    tmp_path: Path, server: ScriptedServer
) -> None:
    folder = tmp_path / "h" / "skills" / "my-guard"
    folder.mkdir(parents=True)
    for name in ("service.py", "SKILL.md"):
        (folder / name).write_bytes((SEED / f"{name}.txt").read_bytes())
    async with house(tmp_path / "h", server) as there:
        assert (await there.info("my-guard")).state == "ungranted"
        assert "fine" in await there.shell("echo fine; true 'rm -rf /'")
        assert (await there.grant("my-guard")).state == "running"
        for pattern in ("rm -rf /", "DROP TABLE", ":(){ :|:& };:"):
            assert f"blocked: {pattern}" in await there.shell(f"true '{pattern}'")
        assert "fine" in await there.shell("echo fine")


async def test_it_is_allowed_by_its_content_and_a_change_asks_again(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "guard", {"service.py": GUARD.format(word="one", reason="no ones")})
    async with house(home, server) as there:
        await there.grant("guard")
        assert "no ones" in await there.shell("echo one")
        write_skill(home, "guard", {"service.py": GUARD.format(word="never", reason="")})
        await there.call(SkillReload())
        changed = await there.info("guard")
        assert changed.state == "degraded"
        assert changed.digest != changed.running
        assert "allows the new version" in changed.reason
        assert "no ones" in await there.shell("echo one"), "what was allowed goes on guarding"
    async with house(home, server) as there:
        assert "no ones" in await there.shell("echo one"), "also after a restart, from the copy that was allowed"
        await there.grant("guard")
        assert "one" in await there.shell("echo one")


async def test_what_was_looked_at_is_what_is_allowed(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "guard", {"service.py": GUARD.format(word="one", reason="no ones")})
    async with house(home, server) as there:
        seen = await there.info("guard")
        write_skill(home, "guard", {"service.py": GUARD.format(word="two", reason="")})
        with pytest.raises(Conflict, match="has changed since"):
            await there.call(ServiceGrant(service="guard", digest=seen.digest))
        assert (await there.info("guard")).state == "ungranted"


async def test_a_guard_that_is_killed_is_not_a_guard_that_is_off(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="bad word")}, hooks="tool.before")
    async with house(home, server) as there:
        await there.grant("guard")
        for pid in processes(f"{home}/state"):
            os.kill(pid, signal.SIGKILL)
        answer = await there.shell("echo anything")
        assert "could not decide" in answer or ("anything" in answer and processes("guard"))
        info = await there.until("guard", lambda one: one.state == "running" and one.restarts == 1)
        assert info.generation == 2
        assert "bad word" in await there.shell("echo bad")


async def test_stopped_by_its_owner_it_guards_nothing_and_started_again_it_does(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="bad word")})
    async with house(home, server) as there:
        await there.grant("guard")
        assert (await there.call(SkillStop(skill="guard"))).state == "stopped"
        assert not processes(f"{home}/state")
        assert "bad" in await there.shell("echo bad")
    async with house(home, server) as there:
        assert (await there.info("guard")).state == "stopped", "it stays so over a restart"
        assert (await there.call(SkillStart(skill="guard"))).state == "running"
        assert "bad word" in await there.shell("echo bad")
        assert (await there.call(ServiceRevoke(service="guard"))).state == "ungranted"
        assert "bad" in await there.shell("echo bad")
        with pytest.raises(Conflict, match="was not allowed"):
            await there.call(SkillStart(skill="guard"))


async def test_a_version_that_does_not_start_leaves_the_old_one_in_its_place(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="bad word")})
    async with house(home, server, {"services": {"trusted": ["guard"]}}) as there:
        await there.until("guard", lambda one: one.state == "running")
        write_skill(home, "guard", {"service.py": "raise SystemExit('not today')"})
        await there.call(SkillReload())
        info = await there.until("guard", lambda one: one.state == "degraded")
        assert "did not start" in info.reason
        assert "bad word" in await there.shell("echo bad")
        assert "not today" in await there.log("guard")
        write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="another word")})
        await there.call(SkillReload())
        await there.until("guard", lambda one: one.state == "running" and not one.reason)
        assert "another word" in await there.shell("echo bad")


async def test_one_that_always_breaks_is_tried_five_times_and_then_said_to_have_failed(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "broken", {"service.py": "import os; os._exit(3)"}, hooks="tool.before")
    async with house(home, server) as there:
        first = await there.grant("broken")
        assert first.state == "waiting"
        assert "could not decide" in await there.shell("echo hello"), "it was allowed as a guard, and it is not there"
        info = await there.until("broken", lambda one: one.state == "failed", 25)
        assert info.restarts == 4
        assert "code 3" in info.reason


async def test_a_wrong_configuration_is_not_tried_again(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "unset", {"service.py": "raise SystemExit(78)"})
    async with house(home, server) as there:
        info = await there.grant("unset")
        assert (info.state, info.restarts) == ("failed", 0)
        assert "78" in info.reason


async def test_a_guard_that_hangs_is_waited_for_as_long_as_it_says_and_then_refuses(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(
        home,
        "slow",
        {
            "service.py": """
            import threading
            from operant_sdk import define_service, hook

            @define_service
            def service():
                def guard(input, output):
                    threading.Event().wait(60)
                return {"hooks": {"tool.before": hook(guard, timeout_s=0.2, tools=["shell"])}}
            """
        },
    )
    async with house(home, server) as there:
        await there.grant("slow")
        assert "took more than 0.2 s" in await there.shell("echo hello")
        assert "took more" not in await there.tool("list_files"), "what it does not match never leaves the process"


async def test_a_guard_that_rewrites_in_the_validating_phase_has_failed(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(
        home,
        "sly",
        {
            "service.py": """
            from operant_sdk import define_service, hook

            @define_service
            def service():
                def guard(input, output):
                    return {"arguments": {"command": "echo replaced"}}
                return {"hooks": {"tool.before": hook(guard, phase="validate")}}
            """
        },
    )
    async with house(home, server) as there:
        await there.grant("sly")
        assert "may not rewrite" in await there.shell("echo hello")


@pytest.mark.slow
async def test_calls_of_a_hundred_sessions_all_meet_a_guard_while_it_is_replaced(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Every call is refused by some version, whichever; none slips through and no turn fails."""
    home = tmp_path / "h"
    server.script("go", [{"calls": [{"name": "shell", "arguments": {"command": "echo bad"}}]}, {"text": "Done."}])
    write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="version 0")}, hooks="tool.before")
    async with house(home, server, {"services": {"trusted": ["guard"]}}) as there:
        await there.until("guard", lambda one: one.state == "running")
        replaced = asyncio.Event()

        async def replace() -> None:
            for version in range(1, 16):
                before = (await there.info("guard")).generation
                text = GUARD.format(word="bad", reason=f"version {version}")
                write_skill(home, "guard", {"service.py": text}, hooks="tool.before")
                await there.call(SkillReload())
                await there.newer("guard", before)
            replaced.set()

        async def talk(number: int) -> tuple[int, list[str]]:
            turns, said = 0, []
            while not replaced.is_set():
                turns += 1
                said = await there.says("@go", f"s{number}", turns)
            return turns, said

        async with asyncio.TaskGroup() as group:
            group.create_task(replace())
            talks = [group.create_task(talk(number)) for number in range(100)]
        assert sum(turns for turns, _ in (one.result() for one in talks)) >= 100
        for turns, said in (one.result() for one in talks):
            assert len(said) == turns
            assert all("version" in answer for answer in said), [one for one in said if "version" not in one]


async def test_nothing_of_a_service_outlives_the_system(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="bad word")})
    async with house(home, server) as there:
        await there.grant("guard")
        assert processes(f"{home.name}/state")
    assert not processes(str(home))


async def test_trust_is_for_a_skill_of_the_home_and_ends_where_it_was_given(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    elsewhere = tmp_path / "elsewhere"
    write_skill(elsewhere, "guard", {"service.py": GUARD.format(word="bad", reason="not mine")})
    more = {"services": {"trusted": ["guard"]}, "skills": {"folders": [str(elsewhere / "skills")]}}
    async with house(home, server, more) as there:
        assert (await there.info("guard")).state == "ungranted"
        write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="mine")})
        await there.call(SkillReload())
        await there.until("guard", lambda one: one.state == "running")
        with pytest.raises(Conflict, match="is trusted"):
            await there.call(ServiceRevoke(service="guard"))
