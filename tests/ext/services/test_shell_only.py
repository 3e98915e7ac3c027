"""An agent with nothing but a shell: its one tool, the commands of skills, and what it cannot get at from inside."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import House, house, write_skill

ONLY = {"agents": {"operant": {"permissions": {"tools": ["shell"]}, "approval": {"shell": "allow"}}}}
WEATHER = """
from operant_sdk import command, define_service

@define_service
def service():
    def weather(arguments, input, call):
        if not arguments:
            return 2, "", "usage: weather PLACE\\n"
        return f"{arguments[0]}: sun for {call['agent']} in {call['session']}. {input}\\n"
    told = command(weather, "the weather of a place")
    return {"commands": {"weather": told, "ls": command(weather), "skill": command(weather)}}
"""
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="apt-get install bubblewrap")


async def types(there: House, command: str, session: str = "s") -> str:
    """Have the agent type a command."""
    return await there.shell(command)


async def test_exactly_one_tool_goes_to_the_model_and_the_commands_are_told(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "h"
    server.script("go", [{"text": "Hello."}])
    write_skill(home, "weather", {"service.py": WEATHER})
    async with house(home, server, ONLY) as there:
        await there.grant("weather")
        await there.says("@go")
    asked = server.requests[-1].body
    assert [one["function"]["name"] for one in asked["tools"]] == ["shell"]
    system = asked["messages"][0]["content"]
    assert "- weather: the weather of a place" in system
    assert "`skill list [WORDS]`" in system


async def test_commands_of_skills_work_in_its_shell(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "weather", {"service.py": WEATHER})
    async with house(home, server, ONLY) as there:
        await there.grant("weather")
        assert "Kraków: sun for operant in" in await types(there, "weather Kraków")
        assert "usage: weather PLACE" in await types(there, "weather || echo code $?")
        assert "code 2" in await types(there, "weather 2>/dev/null || echo code $?")
        assert "so it says" in await types(there, "echo so it says | weather Oslo -")
        assert "sun" not in await types(there, "ls"), "the programs of the system are what they were"
        assert "skill-creator" in await types(there, "skill list")
        assert "Use when" not in (found := await types(there, "skill load weather")) and "Words." in found
        assert "There is no skill" in await types(there, "skill load nothing")
        assert "usage: skill" in await types(there, "skill frobnicate; true")
        assert "sun" in await types(there, "(for i in 1 2 3 4 5; do weather $i & done; wait)")


MEASURE = """
from operant_sdk import command, define_service

@define_service
def service():
    def measure(arguments, input, call):
        return f"{len(input)} {input[-1:]} {arguments}"
    return {"commands": {"measure": command(measure)}}
"""


async def test_standard_input_is_passed_on_whole_or_refused(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "measure", {"service.py": MEASURE})
    async with house(home, server, ONLY) as there:
        await there.grant("measure")
        for letter in ("x", "é", "漢", "🦊"):
            most = 512 * 1024 // len(letter.encode())
            made = f"python3 -c 'print(end=\"{letter}\" * {most})'"
            assert f"{most} {letter}" in await types(there, f"{made} | measure -")
        for size in (512 * 1024 + 1, 1 << 20, 64 << 20):
            told = await types(there, f"head -c {size} /dev/zero | measure - || echo code $?")
            assert "measure: standard input has more than 512 KiB" in told
            assert "code 65" in told
        assert "3 c ['-', '\ufffd']" in await types(there, r"printf 'a\xffc' | measure - $'\xff'")


async def test_a_command_whose_service_died_says_so(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "weather", {"service.py": WEATHER.replace('return f"', 'import os; os._exit(1); return f"')})
    async with house(home, server, ONLY) as there:
        await there.grant("weather")
        assert "The service" in await types(there, "weather x; true")


PROBE = """
import glob, json, os, socket, subprocess
found = {}
secret = "CANARY-0123456789"
home = HOME
def note(what, value):
    found[what] = str(value)[:300]
for name, value in os.environ.items():
    if secret in value or "TOKEN" in name or "KEY" in name:
        note("environment", name)
mine = {os.getpid(), os.getppid()}
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        data = open(path, "rb").read()
    except OSError:
        continue
    if secret.encode() in data:
        note("another's environment", path)
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        words = open(path, "rb").read()
    except OSError:
        continue
    ours = (b"operant.cli", b"operant serve", b"pytest", b"operant_sdk")
    if b"bwrap" not in words and any(one in words for one in ours):
        note("a process of ours", words)
for name in ("state/token", "state/operant.db", "operant.yaml", "env", "state", "logs/operant.log", "run/daemon.lock"):
    try:
        path = os.path.join(home, name)
        note("a file of ours", (path, os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(50)))
    except OSError:
        pass
sockets = [os.path.join(home, "state/operant.sock"), "/var/run/docker.sock", "/run/dbus/system_bus_socket"]
sockets += glob.glob(os.path.join(home, "state/**/*.sock"), recursive=True)
for path in set(sockets) - {os.environ.get("OPERANT_COMMANDS")}:
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(path)
        note("a socket", path)
    except OSError:
        pass
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["OPERANT_COMMANDS"])
file = line.makefile("rwb")
for text in (b'{"jsonrpc":"2.0","id":1,"method":"session.list"}', b'{"name":"session.list"}', b'{"name":"../sh"}'):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.environ["OPERANT_COMMANDS"])
        line.sendall(text + b"\\n")
        answer = json.loads(line.makefile().readline())
        if answer.get("code", 0) == 0:
            note("a syscall", (text, answer))
for port in PORTS:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        note("a port", port)
    except OSError:
        pass
for pid in (1, os.getppid()):
    try:
        open(f"/proc/{pid}/mem", "rb").seek(1)
    except OSError:
        continue
print(json.dumps(found))
"""


@needs_bubblewrap
async def test_a_probe_from_inside_finds_nothing_of_ours(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    (home / "env").write_text("WEATHER_KEY=CANARY-0123456789\n")
    write_skill(home, "weather", {"service.py": WEATHER}, secrets="WEATHER_KEY")
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    env_file = {"defaults": {"models": ["scripted/one"], "env_file": str(home / "env")}}
    async with house(home, server, {**ONLY, **env_file}) as there:
        await there.grant("weather")
        probe = PROBE.replace("HOME", repr(str(home)), 1).replace("PORTS", f"[{port}]")
        (home / "agents" / "operant" / "workspace" / "probe.py").write_text(probe)
        said = await there.shell("python3 probe.py")
    assert json.loads(said.strip().splitlines()[-1]) == {}, said


async def test_the_first_commands_of_many_sessions_at_once_all_work(tmp_path: Path, server: ScriptedServer) -> None:
    async with house(tmp_path / "h", server, ONLY) as there, asyncio.TaskGroup() as group:
        said = [group.create_task(types(there, "skill list")) for _ in range(12)]
    assert all("skill-creator" in one.result() for one in said), [one.result() for one in said]
