"""Services in a running system: tools, syscalls, state, timers, secrets, setup, and what they may not."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from operant.app.build import Options, running
from operant.app.home import Home
from operant.kernel.syscalls import ServiceGrant, SkillReload
from operant.sdk import NotFound
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import House, house, write_skill

HERE = Path(__file__).parent
ASKS = """
from operant_sdk import Failed, define_service, tool

@define_service
def service(kernel):
    def ask(arguments, call):
        try:
            return repr(kernel.call(arguments["method"], **arguments.get("params", {})))
        except Failed as error:
            return f"{error.code}: {error}"
    return {"tools": {"ask_kernel": tool(ask, "Make a syscall.", {
        "type": "object", "properties": {"method": {"type": "string"}, "params": {"type": "object"}},
        "required": ["method"]})}}
"""


@pytest.mark.parametrize("file", ["sdk.py", "sdk.mjs", "byhand.py", "byhand.pl", "byhand.sh"])
async def test_the_mirror_in_every_guise_works_in_its_sandbox(
    tmp_path: Path, server: ScriptedServer, file: str
) -> None:
    needs = {".mjs": "node", ".pl": "perl", ".sh": "socat"}.get(Path(file).suffix, "")
    if needs and shutil.which(needs) is None:
        pytest.skip(f"not installed: apt-get install {needs}")
    home = tmp_path / "h"
    text = (HERE / "mirrors" / file).read_text("utf-8")
    told = "exec: python3 ./byhand.py" if file == "byhand.py" else f"./{file}"
    write_skill(home, "mirror", {file: text}, service=told)
    async with house(home, server) as there:
        info = await there.grant("mirror")
        assert info.state == "running", await there.log("mirror")
        assert (info.hooks, info.tools, info.commands) == (("tool.before",), ("echo",), ("greet",))
        assert await there.tool("echo", text="zażółć\n🦊") == "zażółć\n🦊"
        assert "Not allowed: no" in await there.shell("echo forbidden")
        assert (await there.shell("echo please rewritten")).strip() == "rewritten"
        assert "count" in await there.shell("echo count")
        assert "count" in await there.shell("echo count again")
        assert "string" in await there.tool("echo", text=5), "arguments are checked before they are sent"


async def test_it_may_what_was_granted_and_is_told_what_it_lacks(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "asks", {"service.py": ASKS}, grants="session.read")
    async with house(home, server) as there:
        info = await there.grant("asks")
        assert info.granted == ("session.read",)
        assert await there.tool("ask_kernel", method="session.list")
        for method in ("session.dispatch", "token.list", "service.grant", "kernel.shutdown", "tool.invoke"):
            params = {"session": "x", "parts": [], "service": "asks", "name": "shell", "arguments": {}}
            assert (await there.tool("ask_kernel", method=method, params=params)).startswith("denied: skill asks"), (
                method
            )
        assert (await there.tool("ask_kernel", method="no.such")).startswith("not_found")
        assert (await there.tool("ask_kernel", method="session.get", params={"x": 1})).startswith("invalid")


async def test_its_state_is_its_own_and_outlives_it(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "asks", {"service.py": ASKS})
    write_skill(home, "other", {"service.py": ASKS.replace("ask_kernel", "ask_other")})
    async with house(home, server) as there:
        await there.grant("asks")
        await there.grant("other")
        await there.tool("ask_kernel", method="service.state.set", params={"key": "k", "value": "v"})
        assert await there.tool("ask_other", method="service.state.get", params={"key": "k"}) == "None"
    async with house(home, server) as there:
        assert await there.tool("ask_kernel", method="service.state.get", params={"key": "k"}) == "'v'"
        assert await there.tool("ask_kernel", method="service.state.list") == "{'k': 'v'}"
        await there.tool("ask_kernel", method="service.state.delete", params={"key": "k"})
        assert await there.tool("ask_kernel", method="service.state.list") == "{}"


async def test_a_secret_is_given_when_it_was_declared_and_never_written_down(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    (home / "env").write_text("WEATHER_KEY=CANARY-0123456789\nOTHER_KEY=CANARY-9876543210\n")
    service = ASKS.replace("    def ask(", "    kernel.call\n    def ask(").replace(
        "            return repr(",
        "            print('seen', kernel.secret('WEATHER_KEY'), flush=True)\n            return repr(",
    )
    write_skill(home, "asks", {"service.py": service}, secrets="WEATHER_KEY")
    env_file = {"defaults": {"models": ["scripted/one"], "env_file": str(home / "env")}}
    async with house(home, server, env_file) as there:
        await there.grant("asks")
        assert "CANARY-0123456789" not in await there.tool("ask_kernel", method="session.list")
        other = await there.tool("ask_kernel", method="service.secret", params={"name": "OTHER_KEY"})
        assert other.startswith("denied")
        await there.until("asks", lambda one: one.state == "running")
        log = await there.log("asks")
    assert "seen ***" in log
    for path in (home / "logs").rglob("*"):
        assert not path.is_file() or b"CANARY" not in path.read_bytes(), path


async def test_a_timer_is_told_again_after_a_restart_until_it_is_dealt_with(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    service = """
    from operant_sdk import define_service, tool

    @define_service
    def service(kernel):
        def remind(arguments, call):
            kernel.timer("soon", after_s=arguments["after"], data="milk")
            return "set"
        def ring(data):
            if not kernel.state.get("broken"):
                kernel.state.set("broken", "once")
                raise RuntimeError("not yet")
            kernel.state.set("rang", data)
        rang = tool(lambda a, c: kernel.state.get("rang", "no"), "Ask.")
        return {"tools": {"remind": tool(remind, "Remind."), "rang": rang}, "timers": {"soon": ring}}
    """
    write_skill(home, "reminder", {"service.py": service})
    async with house(home, server) as there:
        await there.grant("reminder")
        assert await there.tool("remind", after=0.05) == "set"
        while "not yet" not in await there.log("reminder"):
            pass
        assert await there.tool("rang") == "no"
    async with house(home, server) as there:
        while await there.tool("rang") == "no":
            pass
        assert await there.tool("rang") == "milk"


async def test_setup_runs_once_for_each_content(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    setup = "echo set up; echo x >> made; cat made"
    service = """
    import pathlib
    from operant_sdk import define_service, tool

    @define_service
    def service():
        made = pathlib.Path("made").read_text()
        return {"tools": {"made": tool(lambda a, c: made, "What setup made.")}}
    """
    write_skill(home, "prepared", {"service.py": service, "setup.sh": setup})
    async with house(home, server) as there:
        await there.grant("prepared")
        assert await there.tool("made") == "x\n"
        await there.call(SkillReload(skill="prepared"))
        await there.newer("prepared", 1)
        assert await there.tool("made") == "x\n"
        assert (await there.log("prepared")).count("set up") == 1
        write_skill(home, "prepared", {"setup.sh": "echo set up; exit 4", "service.py": service})
        assert "ended with code 4" in (await there.call(ServiceGrant(service="prepared"))).reason
        assert await there.tool("made") == "x\n", "the old one is still there"


async def test_what_it_declares_is_what_it_may_hook(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    wide = """
    from operant_sdk import define_service

    @define_service
    def service():
        return {"hooks": {"dispatch.before": lambda input, output: None}}
    """
    write_skill(home, "wide", {"service.py": wide}, hooks="message.before")
    async with house(home, server) as there:
        info = await there.grant("wide")
        assert info.state in ("waiting", "failed")
        assert "does not declare the hooks dispatch.before" in info.reason


async def test_a_skill_without_a_service_has_none(tmp_path: Path, server: ScriptedServer) -> None:
    async with house(tmp_path / "h", server) as there:
        with pytest.raises(NotFound, match="No skill 'nobody' has a service"):
            await there.grant("nobody")


@pytest.mark.parametrize("file", ["service.py", "service.mjs"])
async def test_an_input_that_is_too_long_for_a_message_is_read_in_pieces(
    tmp_path: Path, server: ScriptedServer, file: str
) -> None:
    home = tmp_path / "h"
    text = {
        "service.py": """
        from operant_sdk import define_service

        @define_service
        def service():
            def engine(input, output):
                words = sum(len(part["text"]) for one in input["messages"] for part in one["parts"])
                return {"system": f"{words} characters", "tools": []}
            return {"hooks": {"session.assemble": {"handler": engine, "priority": 5}}}
        """,
        "service.mjs": """
        import { defineService } from "@operant/sdk";
        defineService(() => ({ hooks: { "session.assemble": { priority: 5, handler: (input) => {
          const words = input.messages.flatMap((one) => one.parts).reduce((sum, part) => sum + part.text.length, 0);
          return { system: `${words} characters`, tools: [] };
        } } } }));
        """,
    }[file]
    write_skill(home, "engine", {file: text}, service=f"./{file}", hooks="session.assemble")
    async with house(home, server) as there:
        assert (await there.grant("engine")).state == "running", await there.log("engine")
        await there.says("é" * 700_000)
        assert server.requests[-1].body["messages"][0]["content"].startswith("7000"), await there.log("engine")


async def test_it_is_given_its_configuration(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    text = """
    from operant_sdk import define_service, tool

    @define_service
    def service(kernel):
        return {"tools": {"told": tool(lambda a, c: kernel.configuration.get("word", "nothing"), "What it was told.")}}
    """
    write_skill(home, "told", {"service.py": text})
    async with house(home, server, {"services": {"configuration": {"told": {"word": "please"}}}}) as there:
        await there.grant("told")
        assert await there.tool("told") == "please"


async def test_without_a_daemon_services_are_listed_and_allowed_and_none_is_started(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "asks", {"service.py": ASKS})
    async with house(home, server):
        pass
    command = Options(env={"PATH": "/usr/bin:/bin"}, overrides={}, work=False)
    async with running(Home(home), command) as made:
        idle = House(made)
        assert (await idle.info("asks")).state == "ungranted"
        info = await idle.grant("asks")
        assert (info.state, info.reason, info.pid) == ("waiting", "it runs when Operant does", 0)
    async with house(home, server) as there:
        assert (await there.info("asks")).state == "running"


async def test_a_service_has_a_say_about_skills_that_are_read_and_services_that_start(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    text = """
    from operant_sdk import define_service, reject, tool

    @define_service
    def service(kernel):
        def load(input, output):
            if input["name"] == "summarize":
                return reject("not that one")
            return {"text": output["text"].replace("Words.", "Other words.")}
        def start(input, output):
            return reject("not on my watch") if input["service"] == "asks" else None
        def seen(what):
            return lambda input: kernel.state.set(what, (kernel.state.get(what) or "") + input["service"] + " ")
        told = tool(lambda a, c: repr(kernel.state.list()), "What it saw.")
        return {"hooks": {"skill.load.before": load, "service.start.before": start}, "tools": {"seen": told},
                "events": {"skill.started": seen("started"), "skill.failed": seen("failed")}}
    """
    write_skill(home, "warden", {"service.py": text})
    write_skill(home, "asks", {"service.py": ASKS})
    write_skill(home, "other", {"service.py": ASKS.replace("ask_kernel", "ask_other")})
    async with house(home, server) as there:
        assert (await there.grant("warden")).state == "running", await there.log("warden")
        assert "not that one" in await there.tool("read_skill", name="summarize")
        assert "not that one" in await there.shell("skill load summarize; true")
        assert "Other words." in await there.tool("read_skill", name="asks")
        assert "Other words." in await there.shell("skill load asks")
        refused = await there.grant("asks")
        assert (refused.state, refused.reason) == ("failed", "it may not start: not on my watch")
        assert (await there.grant("other")).state == "running"
        async with asyncio.timeout(10):
            while "other" not in (seen := await there.tool("seen")) or "asks" not in seen:
                await asyncio.sleep(0)
    async with house(home, server) as there:
        assert (await there.info("warden")).state == "running", "it does not stand in its own way"
