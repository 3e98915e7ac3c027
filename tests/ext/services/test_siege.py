"""Ways around a service, and ways for one service to take more than it was given."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.ext.services.journal import Journal
from operant.kernel.syscalls import KvSet, ServiceRevoke, SessionOpen, SkillReload, SkillStop
from operant.kit.clock import SystemClock
from operant.sdk import POINTS, Conflict, StoreStopped
from operant.sdk.testing.server import ScriptedServer
from tests.cli.process import Operant
from tests.ext.services.house import GUARD, house, processes, sockets, write_skill

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


async def test_what_breaks_in_a_syscall_or_a_folder_of_one_service_ends_no_other(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "asks", {"service.py": ASKS})
    write_skill(home, "watcher", {"service.py": GUARD.format(word="bad", reason="bad word")})
    async with house(home, server) as there:
        await there.grant("asks")
        await there.grant("watcher")
        much = {"call": "service.state.set", "with": {"key": "a", "value": "b", "ttl_s": 1e308}}
        assert "invalid" in await there.tool("get", **much)
        late = {"call": "service.timer.set", "with": {"name": "a", "after_s": 1e308}}
        assert "invalid" in await there.tool("get", **late)
        write_skill(home, "odd", {"service.py": ""})
        Path(os.fsdecode(os.fsencode(home / "skills" / "odd") + b"/\xff\xfe")).touch()
        write_skill(home, "zero", {}, service="exec: a\0b")
        write_skill(home, "none", {"service.py": ""}, hooks="tool.before")
        write_skill(home, "nowhere", {"service.py": ""}, hooks="no.such.point tool.before")
        await there.call(SkillReload())
        for name in ("odd", "zero", "none"):
            await there.grant(name)
        with pytest.raises(Conflict, match="There is no hook"):
            await there.grant("nowhere")
        assert (await there.info("watcher")).state == "running"
        assert (await there.info("watcher")).restarts == 0
        assert "could not decide" in await there.shell("echo fine"), "what `none` declares is guarded from now on"
        for name in ("odd", "zero", "none", "nowhere"):
            shutil.rmtree(home / "skills" / name)
        await there.call(SkillReload())
        assert "bad word" in await there.shell("echo bad")


async def test_names_that_begin_alike_are_services_of_their_own(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    names = ["a-guard-with-a-rather-long-name-one", "a-guard-with-a-rather-long-name-two"]
    for name in names:
        write_skill(home, name, {"service.py": GUARD.format(word=name[-3:], reason=f"no {name[-3:]}")})
    async with house(home, server) as there:
        await asyncio.gather(*map(there.grant, names))
        for name in names:
            assert (await there.info(name)).state == "running"
            assert f"no {name[-3:]}" in await there.shell(f"echo {name[-3:]}")


async def test_at_the_end_nothing_is_left_and_nothing_failed(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / ("h" * 60)
    write_skill(home, "alone", {"service.py": GUARD.format(word="bad", reason="bad word")})
    async with house(home, server) as there:
        await there.grant("alone")
        (ours,) = (one.parent for one in sockets(f"alone-{os.getpid()}-"))
    assert not ours.exists()
    assert "extension services failed" not in there.made.home.log.read_text()


async def test_a_start_that_takes_long_is_given_up_when_somebody_says_stop(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    write_skill(home, "waits", {"service.py": "import threading\nthreading.Event().wait()\n"})
    async with house(home, server) as there:
        granting = asyncio.ensure_future(there.grant("waits"))
        await there.until("waits", lambda one: one.state == "starting")
        async with asyncio.timeout(8):
            assert (await there.call(SkillStop(skill="waits"))).state == "stopped"
            assert (await granting).state == "stopped"
        assert not processes(str(home))


async def test_what_a_service_asked_for_ends_with_it(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    text = """
    import threading
    from operant_sdk import define_service, tool

    @define_service
    def service(kernel):
        def begin(arguments, call):
            words = {"command": "sleep 299.125"}
            threading.Thread(target=lambda: kernel.call("tool.invoke", name="shell", arguments=words)).start()
            return "begun"
        return {"tools": {"begin": tool(begin, "Begin.")}}
    """
    write_skill(home, "begins", {"service.py": text}, grants="tool.invoke")
    async with house(home, server) as there:
        await there.grant("begins")
        await there.tool("begin")
        async with asyncio.timeout(10):
            while not processes("299.125"):
                await asyncio.sleep(0)
            await there.call(ServiceRevoke(service="begins"))
            while processes("299.125"):
                await asyncio.sleep(0)


async def test_an_answer_that_cannot_be_sent_is_an_error_and_the_next_one_comes(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    text = """
    from operant_sdk import define_service, tool

    @define_service
    def service():
        def much(arguments, call):
            return "x" * arguments["size"] if "size" in arguments else {"text": {1, 2}}
        return {"tools": {"much": tool(much, "Much.")}}
    """
    write_skill(home, "says", {"service.py": text})
    async with house(home, server) as there:
        await there.grant("says")
        async with asyncio.timeout(10):
            assert "A message may have" in await there.tool("much", size=2_000_000)
            assert "TypeError" in await there.tool("much")
            assert await there.tool("much", size=3) == "xxx"


async def test_as_many_handlers_as_there_are_threads_all_get_their_answers(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    text = """
    import threading
    import operant_sdk
    from operant_sdk import define_service, tool

    operant_sdk.MOST_THREADS = 4
    together = threading.Barrier(4)

    @define_service
    def service(kernel):
        def get(arguments, call):
            together.wait()
            return str(kernel.state.get("a", "none"))
        return {"tools": {"get": tool(get, "Get.")}}
    """
    write_skill(home, "many", {"service.py": text})
    async with house(home, server) as there:
        await there.grant("many")
        async with asyncio.timeout(10):
            assert await asyncio.gather(*(there.tool("get") for _ in range(4))) == ["none"] * 4


@pytest.mark.parametrize(
    "tools", ['[{"name": "shell\\n", "description": "Mine."}]', '[{"name": "x", "description": "y"}] * 101']
)
async def test_what_cannot_be_offered_is_not(tmp_path: Path, server: ScriptedServer, tools: str) -> None:
    home = tmp_path / "h"
    text = f"""
    import json, os, socket
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ["OPERANT_SERVICE_SOCKET"])
    params = {{"protocol": "svc/1", "token": os.environ["OPERANT_SERVICE_TOKEN"], "tools": {tools}}}
    words = {{"jsonrpc": "2.0", "id": 1, "method": "register", "params": params}}
    line.sendall((json.dumps(words) + chr(10)).encode())
    line.recv(1)
    """
    write_skill(home, "odd", {"service.py": text}, service="exec: python3 ./service.py")
    async with house(home, server) as there:
        assert "what it registers is wrong" in (await there.grant("odd")).reason


async def test_one_that_did_not_register_is_not_heard(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    text = """
    import json, os, socket, time
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ["OPERANT_SERVICE_SOCKET"])
    say = lambda **words: (json.dumps({"jsonrpc": "2.0", **words}) + "\\n").encode()
    line.sendall(
        say(id=1, method="register", params={"protocol": "svc/1", "token": "guessed"})
        + say(method="log", params={"text": "sneaked"})
    )
    time.sleep(30)
    """
    write_skill(home, "sneaks", {"service.py": text}, service="exec: python3 ./service.py")
    async with house(home, server) as there:
        assert "token" in (await there.grant("sneaks")).reason
        assert "sneaked" not in await there.log("sneaks")


async def test_a_service_that_answers_pings_with_errors_is_still_watched(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operant.ext.services.generation.HEARTBEAT_S", 0.2)
    home = tmp_path / "h"
    text = """
    import json, os, socket, time
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ["OPERANT_SERVICE_SOCKET"])
    def say(**words):
        line.sendall((json.dumps({"jsonrpc": "2.0", **words}) + "\\n").encode())
    say(id=1, method="register", params={"protocol": "svc/1", "token": os.environ["OPERANT_SERVICE_TOKEN"]})
    for text in line.makefile("rb"):
        message = json.loads(text)
        if message.get("method") == "ping":
            say(id=message["id"], error={"code": -32601, "message": "what?"})
            time.sleep(60)
    """
    write_skill(home, "hangs", {"service.py": text}, service="exec: python3 ./service.py")
    async with house(home, server) as there:
        await there.grant("hangs")
        assert (await there.until("hangs", lambda one: one.generation == 2)).restarts == 1


async def test_a_service_of_an_agent_hears_and_provides_for_that_agent_alone(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    text = """
    from operant_sdk import define_service, hook

    @define_service
    def service(kernel):
        chosen = lambda input, output: kernel.log("chose for " + input["agent"]["name"])
        return {
            "hooks": {"compute.model": hook(chosen, priority=10)},
            "events": {"turn.ended": lambda input: kernel.log("heard of " + input["event"]["session"])},
        }
    """
    write_skill(home, "mine", {"service.py": text}, below="agents/operant/workspace/skills")
    write_skill(home, "all", {"service.py": text})
    free = {"approval": {"shell": "allow", "*": "allow"}}
    async with house(home, server, {"agents": {"operant": free, "other": free}}) as there:
        await there.grant("mine@operant")
        await there.grant("all")
        await there.call(SessionOpen(session="theirs", agent="other"))
        for session in ("theirs", "s"):
            await there.says("Hello.", session)
        async with asyncio.timeout(10):
            for name in ("all", "mine@operant"):
                while "heard of s" not in await there.log(name):
                    await asyncio.sleep(0)
        assert "chose for other" in await there.log("all")
        assert "heard of theirs" in await there.log("all")
        assert "other" not in await there.log("mine@operant")
        assert "theirs" not in await there.log("mine@operant")


async def test_copies_that_nobody_may_run_any_more_are_forgotten(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    async with house(home, server, {"services": {"trusted": ["mine"]}}) as there:
        for version in range(8):
            write_skill(home, "mine", {"service.py": GUARD.format(word=f"v{version}", reason="no")})
            await there.call(SkillReload())
            digest = (await there.info("mine")).digest
            await there.until("mine", lambda one, digest=digest: one.running == digest)
        (place,) = (one.parent for one in home.rglob("data") if one.parent.name == "mine")
        assert len([one for one in place.iterdir() if one.is_dir() and one.name != "data"]) <= 6
        await there.call(SkillStop(skill="mine"))
        write_skill(home, "mine", {"service.py": GUARD.format(word="last", reason="no")})
        await there.call(SkillReload())
        assert (await there.info("mine")).state == "stopped", "it stays so when its files change"


def test_a_secret_of_many_lines_is_in_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal("../../shows", tmp_path / "logs", SystemClock())
    secret = "CANARY-one-0123\nCANARY-two-4567\n"
    journal.hide(secret)
    journal.hide("")
    journal.write(secret.encode())
    journal.say("warning", f"it is {secret}.")
    assert "CANARY" not in "\n".join(journal.tail(10))
    assert journal.tail(10)[-1].endswith("it is *** *** .")
    assert "CANARY" not in caplog.text
    assert [one.parent for one in tmp_path.rglob("*.log")] == [tmp_path / "logs"]


async def test_commands_are_those_of_now_and_a_shell_that_knocks_often_is_let_in_no_more(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    text = """
    from operant_sdk import command, define_service

    @define_service
    def service():
        return {"commands": {name: command(lambda a, i, c, name=name: name + " here", "Say.") for name in NAMES}}
    """
    knocks = (
        "import os, socket; all = []\n"
        "for _ in range(200):\n"
        "    one = socket.socket(socket.AF_UNIX); one.connect(os.environ['OPERANT_COMMANDS']); all.append(one)\n"
        "    one.settimeout(0.05)\n"
        "closed = 0\n"
        "for one in all:\n"
        "    try: closed += one.recv(1) == b''\n"
        "    except ConnectionError: closed += 1\n"
        "    except TimeoutError: pass\n"
        "print('closed', closed)"
    )
    async with house(home, server, {"services": {"trusted": ["says"]}}) as there:
        for names in (["aa-bb", "zz"], ["aa", "bb-zz"]):
            write_skill(home, "says", {"service.py": text.replace("NAMES", str(names))})
            await there.call(SkillReload())
            await there.until("says", lambda one, names=names: sorted(one.commands) == names)
            said = await there.shell("; ".join(names))
            assert [f"{name} here" in said for name in names] == [True, True], said
        assert "closed 136" in await there.shell(f'python3 -c "{knocks}"')


def test_without_a_daemon_the_command_line_has_the_same_services_and_guards(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    (home / "operant.yaml").write_text("agents: {operant: {approval: {shell: allow}}}\n")
    write_skill(home, "watcher", {"service.py": GUARD.format(word="bad", reason="bad word")})
    operant = Operant(home)
    shell = ("tool", "run", "shell", '{"command": "echo bad"}')
    assert "ungranted" in operant("skill", "services").out
    assert "it runs when Operant does" in operant("skill", "grant", "watcher", "--yes").out
    assert "bad word" in operant(*shell).out
    assert "stopped" in operant("skill", "stop", "watcher").out
    assert operant(*shell).out == "bad\n"
    assert "it runs when Operant does" in operant("skill", "start", "watcher").out, "what was allowed is known still"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MB, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") is not None and not subprocess.call(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(place)], stderr=subprocess.DEVNULL
    )
    if not mounted:
        pytest.skip("this user may not mount a small disk")
    yield place
    subprocess.check_call(["umount", "--lazy", str(place)])


async def test_a_disk_that_is_full_ends_no_service(
    small_disk: Path, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    home = small_disk / "h"
    text = """
    from operant_sdk import define_service, tool

    @define_service
    def service(kernel):
        begin = lambda arguments, call: kernel.timer("soon", after_s=2)
        return {"tools": {"begin": tool(begin, "Begin.")}, "timers": {"soon": lambda data: None}}
    """
    write_skill(home, "rings", {"service.py": text})
    logger = logging.getLogger("operant.services")
    logger.addHandler(caplog.handler)
    caplog.set_level(logging.INFO, logger.name)
    async with house(home, server) as there:
        await there.grant("rings")
        await there.tool("begin")
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        with pytest.raises(StoreStopped):
            for number in range(100):
                await there.call(KvSet(namespace="n", key=str(number), value="x" * 100_000))
        async with asyncio.timeout(15):
            while "soon of rings is told again: The disk is full." not in caplog.text:
                await asyncio.sleep(0)
        assert (await there.info("rings")).state == "running"
        ballast.unlink()
    logger.removeHandler(caplog.handler)


@pytest.mark.parametrize("hooks", ["{}", '{"tool.before": lambda input, output: None}'])
async def test_a_turn_that_began_with_a_guard_ends_with_it(tmp_path: Path, server: ScriptedServer, hooks: str) -> None:
    home = tmp_path / "h"
    calls = ["until [ -e go-on ]; do sleep 0.0431; done", "echo bad"]
    steps = [{"calls": [{"name": "shell", "arguments": {"command": one}}]} for one in calls]
    server.script("go", [*steps, {"text": "Done."}])
    write_skill(home, "watcher", {"service.py": GUARD.format(word="bad", reason="bad word")})
    milder = (
        f"from operant_sdk import define_service\n\n@define_service\ndef service():\n    return {{'hooks': {hooks}}}\n"
    )
    async with house(home, server) as there:
        await there.grant("watcher")
        turn = asyncio.ensure_future(there.says("@go"))
        async with asyncio.timeout(10):
            while not processes("0.0431") and not turn.done():
                await asyncio.sleep(0)
        assert not turn.done()
        write_skill(home, "watcher", {"service.py": milder})
        assert (await there.grant("watcher")).generation == 2
        assert "bad" in await there.shell("echo bad")
        (home / "agents" / "operant" / "workspace" / "go-on").touch()
        assert "bad word" in (await turn)[-1]
        async with asyncio.timeout(10):
            while len(processes(f"{home}/state/extensions/services/watcher/")) > 1:
                await asyncio.sleep(0)
