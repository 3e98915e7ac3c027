"""Ways around a service, and ways for one service to take more than it was given."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from operant.kernel.syscalls import SkillReload
from operant.sdk import POINTS
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import GUARD, house, processes, write_skill

ASKS = """
from operant_sdk import Failed, define_service, tool

@define_service
def service(kernel):
    def get(arguments, call):
        try:
            return str(kernel.call(arguments["call"], **arguments.get("with", {})))
        except Failed as error:
            return f"{error.code}: {error}"
    return {"tools": {"get": tool(get, "Make a syscall.")}}
"""


async def test_what_runs_declares_what_was_allowed_and_not_what_its_file_says_by_now(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    files = {"service.py": ASKS}
    write_skill(home, "asks", files)
    (home / "env").write_text("OTHER_KEY=CANARY-0123456789\n")
    env_file = {"defaults": {"models": ["scripted/one"], "env_file": str(home / "env")}}
    async with house(home, server, env_file) as there:
        await there.grant("asks")
        write_skill(home, "asks", files, grants="admin", secrets="OTHER_KEY", sandbox="off")
        await there.call(SkillReload())
        for _ in range(2):
            assert (await there.info("asks")).granted == ()
            secret = {"call": "service.secret", "with": {"name": "OTHER_KEY"}}
            assert "may not read OTHER_KEY" in await there.tool("get", **secret)
            assert "denied" in await there.tool("get", call="session.list")
            before = await there.info("asks")
            for pid in processes("asks"):
                os.kill(pid, signal.SIGKILL)
            await there.until("asks", lambda one, before=before: one.generation > before.generation and one.pid > 0)
    async with house(home, server, env_file) as there:
        assert "denied" in await there.tool("get", call="session.list"), "also after a restart"


async def test_a_program_that_was_not_allowed_does_not_run_from_the_copy_that_was(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "asks", {"service.py": ASKS})
    async with house(home, server) as there:
        await there.grant("asks")
    mark = home / "mark"
    write_skill(home, "asks", {}, service=f"exec: touch {mark}", sandbox="off")
    async with house(home, server) as there:
        assert (await there.info("asks")).state == "degraded"
        assert not mark.exists()


async def test_an_agent_does_not_switch_a_guard_off_with_a_skill_of_the_same_name(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "watcher", {"service.py": GUARD.format(word="bad", reason="bad word")})
    async with house(home, server) as there:
        await there.grant("watcher")
        write_skill(home, "watcher", {"service.py": ""}, below="agents/operant/workspace/skills")
        await there.call(SkillReload())
        assert (await there.info("watcher@operant")).state == "ungranted"
        assert (await there.info("watcher")).state == "running"
        assert "bad word" in await there.shell("echo bad")


async def test_a_skill_file_that_is_half_saved_does_not_switch_its_guard_off(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    folder = write_skill(home, "watcher", {"service.py": GUARD.format(word="bad", reason="bad word")})
    whole = (folder / "SKILL.md").read_text()
    async with house(home, server) as there:
        await there.grant("watcher")
        (folder / "SKILL.md").write_text("")
        await there.call(SkillReload())
        assert "bad word" in await there.shell("echo bad")
        assert "cannot be read" in (await there.info("watcher")).reason
        (folder / "SKILL.md").write_text(whole)
        await there.call(SkillReload())
        assert (await there.info("watcher")).state == "running"
        shutil.rmtree(folder)
        await there.call(SkillReload())
        assert "bad" in await there.shell("echo bad")


@pytest.mark.parametrize("name", ["guard", "budget"])
async def test_a_skill_with_the_name_of_an_extension_does_not_take_its_hooks_away(
    tmp_path: Path, server: ScriptedServer, name: str
) -> None:
    home = tmp_path / "h"
    async with house(home, server) as there:
        before = {name for name, point in POINTS.items() if there.made.kernel.hooks.has(point)}
        write_skill(home, name, {"service.py": ""})
        await there.call(SkillReload())
        assert (await there.info(name)).state == "ungranted"
        assert {name for name, point in POINTS.items() if there.made.kernel.hooks.has(point)} == before


async def test_calls_side_by_side_are_each_judged(tmp_path: Path, server: ScriptedServer) -> None:
    """A guard is not asked inside itself; another call that happens at the same time is not inside of it."""
    home = tmp_path / "h"
    slow = """
    import time
    from operant_sdk import define_service, reject

    @define_service
    def service():
        def guard(input, output):
            words = output["arguments"].get("command", "")
            time.sleep(0.5 if "slow" in words else 0)
            return reject("evil") if "evil" in words else None
        return {"hooks": {"tool.before": guard}}
    """
    pair = """
    import contextvars, threading, time
    from operant_sdk import define_service, tool

    @define_service
    def service(kernel):
        def both(arguments, call):
            first = contextvars.copy_context()
            ask = lambda words: kernel.call("tool.invoke", name="shell", arguments={"command": words})
            thread = threading.Thread(target=first.run, args=(ask, "echo slow"))
            thread.start()
            time.sleep(0.2)
            answer = str(ask("echo evil"))
            thread.join()
            return answer
        return {"tools": {"both": tool(both, "Call twice.")}}
    """
    write_skill(home, "judge", {"service.py": slow})
    write_skill(home, "pair", {"service.py": pair}, grants="tool.invoke")
    async with house(home, server) as there:
        await there.grant("judge")
        await there.grant("pair")
        assert "Not allowed: evil" in await there.tool("both")
