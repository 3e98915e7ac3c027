"""What whoever writes a service is told when it does not work: in the list, in its log, at its first words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from operant.app.build import Options, running
from operant.app.home import Home
from operant.ext.services.ending import told
from operant.kernel.syscalls import ServiceGrant, SkillStart, SkillStop
from operant.sdk import Conflict
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import GUARD, House, house, write_skill
from tests.ext.services.test_watch import CONFIG
from tests.journey.gateway import served

ENDS = "import sys\nprint('bye', flush=True)\nsys.exit({code})\n"


async def test_a_version_that_was_taken_back_leaves_no_complaint(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    good = GUARD.format(word="bad", reason="first")
    write_skill(home, "guard", {"service.py": good})
    async with house(home, server) as there:
        await there.grant("guard")
        write_skill(home, "guard", {"service.py": "def ("})
        broken = await there.grant("guard")
        assert broken.state == "degraded" and "the new version did not start" in broken.reason
        write_skill(home, "guard", {"service.py": good})
        mended = await there.grant("guard")
        assert (mended.state, mended.reason, mended.generation) == ("running", "", 1)
        assert "first" in await there.shell("echo bad")


async def test_a_hook_point_that_there_is_not_is_said_at_once_and_to_the_service(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(
        home, "typo", {"service.py": GUARD.format(word="bad", reason="no").replace("tool.before", "tool.befor")}
    )
    async with house(home, server) as there:
        info = await there.grant("typo")
        assert info.reason.startswith(
            "what it registers is wrong: There is no hook 'tool.befor'; did you mean tool.before?"
        )
        assert "operant waiting: what it registers is wrong" in await there.log("typo")


async def test_looking_at_it_writes_nothing_into_its_log(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="no")})
    async with house(home, server) as there:
        await there.info("guard")
        assert await there.log("guard") == ""
        await there.grant("guard")
        await there.call(SkillStop(skill="guard"))
        said = [line.split(maxsplit=1)[1] for line in (await there.log("guard")).splitlines()]
        assert said == ["operant running", "operant stopped"]
    async with running(Home(home), Options(env={}, overrides={}, work=False)) as made:
        await House(made).info("guard")
        assert len((await House(made).log("guard")).splitlines()) == 2


async def test_what_it_declares_is_looked_at_before_anybody_grants_it(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    files = {"service.py": GUARD.format(word="bad", reason="no")}
    write_skill(home, "typo", files, hooks="tool.befor")
    write_skill(home, "missing", files, service="./servce.py")
    write_skill(home, "beyond", files, service="../other/service.py")
    write_skill(home, "wish", files, grants="session.reed")
    write_skill(home, "owner", files, grants="session.read service.grant")
    write_skill(home, "kind", files, service="http://x")
    async with house(home, server) as there:
        for name, why in {
            "typo": "operant.hooks: There is no hook 'tool.befor'; did you mean tool.before?",
            "missing": "operant.service: ./servce.py is no file of the skill",
            "beyond": "operant.service: ../other/service.py is no file of the skill",
            "wish": "operant.grants: there is no 'session.reed'; did you mean session.read?",
            "owner": "operant.grants: service.grant is the owner's alone",
            "kind": "operant.service: a service of the kind 'http' cannot be started",
        }.items():
            assert why in (await there.info(name)).reason
            with pytest.raises(Conflict, match="cannot run"):
                await there.grant(name)


async def test_a_program_that_setup_makes_need_not_be_there_before(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    setup = "printf '#!/bin/sh\\nexec python3 -m operant_sdk ./guard.py\\n' > service; chmod +x service"
    files = {"guard.py": GUARD.format(word="bad", reason="made"), "setup.sh": setup}
    write_skill(home, "made", files, service="./service")
    async with house(home, server) as there:
        info = await there.grant("made")
        assert info.state == "running", info.reason
        assert "made" in await there.shell("echo bad")


@pytest.mark.parametrize(
    ("files", "service", "why"),
    [
        ({"service.py": ENDS.format(code=1)}, "./service.py", "its process ended with code 1; its log says why"),
        (
            {"service.py": ENDS.format(code=0)},
            "./service.py",
            "its process ended by itself (code 0), and a service has to stay",
        ),
        (
            {"service.py": ENDS.format(code=78)},
            "./service.py",
            "it says that its configuration is wrong (exit code 78)",
        ),
        ({"service.sh": "kill -9 $$"}, "./service.sh", "its process was ended by signal 9"),
        ({"a": "1"}, "exec: no-such-program a", "the program no-such-program was not found (code 127)"),
        ({"a.py": "1"}, "exec: ./a.py", "its program may not be run (code 126); `chmod +x`?"),
    ],
)
async def test_how_its_process_ended_is_said_and_stands_in_its_log(
    tmp_path: Path, server: ScriptedServer, files: dict[str, str], service: str, why: str
) -> None:
    home = tmp_path / "h"
    write_skill(home, "ends", files, service=service)
    async with house(home, server) as there:
        assert (await there.grant("ends")).reason == why
        assert f": {why}" in await there.log("ends")


def test_codes_that_say_more_than_their_number() -> None:
    node = ("node", "--experimental-strip-types", "service.ts")
    assert told(9, node) == "this Node cannot run TypeScript; 22.6 or newer can"
    assert told(9, ("node", "service.js")) == "its process ended with code 9; its log says why"
    assert told(-15, ()) == told(143, ()) == "its process was ended by signal 15"


async def test_a_gate_that_waits_says_what_is_wrong(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "ends", {"service.py": ENDS.format(code=78)}, hooks="tool.before")
    async with house(home, server) as there:
        await there.grant("ends")
        refused = await there.shell("echo hi")
        assert "The service ends is not running (it says that its configuration is wrong (exit code 78))" in refused
        assert "operant skill logs ends" in refused


async def test_a_folder_counts_for_whoever_names_it_before_it_was_seen(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    async with served(home, server, CONFIG) as made:
        there = House(made.system)
        write_skill(home, "fresh", {"service.py": GUARD.format(word="bad", reason="fresh")})
        assert (await there.call(ServiceGrant(service="fresh"))).state == "running"
        write_skill(home, "other", {"service.py": GUARD.format(word="bad", reason="other")})
        with pytest.raises(Conflict, match="was not allowed"):
            await there.call(SkillStart(skill="other"))


async def test_a_traceback_begins_where_the_author_wrote(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "typo", {"service.py": "x = 1\nundefined()\n"})
    write_skill(home, "syntax", {"service.py": "def (\n"})
    async with house(home, server) as there:
        for name, line, words in (("typo", 2, "NameError"), ("syntax", 1, "SyntaxError")):
            await there.grant(name)
            log = await there.log(name)
            assert f'service.py", line {line}' in log and words in log
            assert "runpy" not in log and "operant_sdk" not in log


STARTED = """
from operant_sdk import Failed, define_service, tool

@define_service
def service(kernel):
    kernel.log("early words")
    try:
        kernel.state.get("k")
    except Failed as error:
        print(error, flush=True)

    def started():
        kernel.state.set("k", "from started " + kernel.configuration["word"])
        kernel.timer("soon", after_s=3600)

    def read(arguments, call):
        return kernel.state.get("k", "nothing")

    return {"started": started, "tools": {"read_k": tool(read, "Read.")}, "timers": {"soon": print}}
"""
STARTED_JS = """
import { defineService } from "@operant/sdk";

defineService(async (kernel) => {
  kernel.log("early words");
  await kernel.state.get("k").catch((error) => console.log(error.message));
  return {
    started: async () => {
      await kernel.state.set("k", "from started " + kernel.configuration.word);
      await kernel.timer("soon", { afterS: 3600 });
    },
    tools: { read_k: { description: "Read.", schema: { type: "object" }, handler: () => kernel.state.get("k") } },
    timers: { soon: console.log },
  };
});
"""


@pytest.mark.parametrize(("file", "text"), [("service.py", STARTED), ("service.mjs", STARTED_JS)])
async def test_what_a_service_does_at_its_start_has_a_place(
    tmp_path: Path, server: ScriptedServer, file: str, text: str
) -> None:
    if file.endswith(".mjs") and shutil.which("node") is None:
        pytest.skip("not installed: apt-get install nodejs")
    home = tmp_path / "h"
    write_skill(home, "starts", {file: text}, service=f"./{file}")
    more = {"services": {"configuration": {"starts": {"word": "milk"}}}}
    async with house(home, server, more) as there:
        info = await there.grant("starts")
        assert info.state == "running", await there.log("starts")
        while (said := await there.tool("read_k")) in ("nothing", "", "null"):
            pass
        assert said == "from started milk"
        log = await there.log("starts")
        assert "early words" in log and "is not registered yet; do it in `started` or in a handler" in log


async def test_a_syscall_stands_for_its_capability(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    files = {"service.py": GUARD.format(word="bad", reason="no")}
    write_skill(home, "named", files, grants="session.get, session.list kv.*")
    async with house(home, server) as there:
        assert (await there.grant("named")).granted == ("session.read", "kv.*")
