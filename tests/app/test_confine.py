"""What a command of an agent may see and reach: decided in one place, and tried on the machine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from operant.app import means
from operant.app.config import SandboxSettings
from operant.app.confine import Confinement
from operant.app.home import Home
from operant.kernel.errors import Unavailable
from operant.kernel.ports import CallContext
from operant.kernel.records import Agent
from operant.kit import landlock, proc, sandbox
from operant.kit.egress import Egress
from operant.kit.sandbox import Bubblewrap
from operant.sdk.extension import Command, Launch
from tests.journey.attacker import BUBBLEWRAP, alive, until

PATH = "/usr/local/bin:/usr/bin:/bin"


async def as_given(session: str, agent: str, tool: str, base: dict[str, str]) -> dict[str, str]:
    return base


class Place:
    """A home with one agent, and commands in its sandbox."""

    def __init__(self, path: Path, settings: SandboxSettings | None = None) -> None:
        self.home = Home(path)
        self.home.init()
        self.workspace = self.home.agents / "operant" / "workspace"
        self.confinement = Confinement(settings or SandboxSettings(), self.home, Egress())
        self.agent = Agent(name="operant", workspace=str(self.workspace))

    @asynccontextmanager
    async def launch(
        self, *argv: str, agent: Agent | None = None, env: dict[str, str] | None = None, **more: Any
    ) -> AsyncIterator[Launch]:
        call = CallContext(call_id="c", session="s", turn="t", agent=agent or self.agent, key="k")
        command = Command(argv=argv, cwd=str(self.workspace), env=env or {"PATH": PATH}, tool="shell", **more)
        async with self.confinement.confine(call, command, as_given) as launch:
            yield launch

    async def run(self, text: str, timeout_s: float = 20, **more) -> proc.Finished:
        async with self.launch("/bin/bash", "-c", text, **more) as launch:
            finished = await proc.launch(launch, timeout_s=timeout_s)
        finished.output.close()
        return finished

    async def says(self, text: str, **more) -> str:
        return (await self.run(text, **more)).output.head


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "home")


async def test_without_a_sandbox_a_command_is_as_it_was_given_after_the_hook(place: Place) -> None:
    async def hook(session: str, agent: str, tool: str, base: dict[str, str]) -> dict[str, str]:
        return {**base, "HOOK": f"{session} {agent} {tool}"}

    free = Agent(name="operant", workspace=str(place.workspace), sandbox=False)
    call = CallContext(call_id="c", session="s", turn="t", agent=free, key="k")
    command = Command(argv=("true",), cwd="/", env={"A": "1"}, tool="shell")
    async with place.confinement.confine(call, command, hook) as launch:
        assert launch == Launch(argv=("true",), cwd="/", env={"A": "1", "HOOK": "s operant shell"})


async def test_where_nothing_confines_nothing_is_launched(tmp_path: Path) -> None:
    place = Place(tmp_path / "home", SandboxSettings(by=()))
    with pytest.raises(Unavailable, match="No kind of sandbox is switched on"):
        async with place.launch("true"):
            raise AssertionError("it was launched")


async def test_an_inert_command_is_confined_also_where_the_agent_is_not(tmp_path: Path) -> None:
    place = Place(tmp_path / "home", SandboxSettings(by=()))
    free = Agent(name="operant", workspace=str(place.workspace), sandbox=False)
    with pytest.raises(Unavailable):
        async with place.launch("true", agent=free, inert=True):
            raise AssertionError("it was launched")


async def test_a_network_that_cannot_be_read_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    found = means.Means("bubblewrap", bubblewrap=Bubblewrap("/usr/bin/bwrap"))

    async def here(by: tuple[str, ...]) -> means.Means:
        return found

    monkeypatch.setattr("operant.app.confine.find_means", here)
    agent = Agent(name="operant", workspace=str(place.workspace), network=("no host",))
    with pytest.raises(Unavailable, match="network of agent operant is set wrongly"):
        async with place.launch("true", agent=agent):
            raise AssertionError("it was launched")


class TestMeans:
    async def test_no_bubblewrap_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: "")
        found = await means.find_means(("bubblewrap",))
        assert (found.kind, found.why) == ("none", "Bubblewrap is not installed.")
        assert found.remedy.startswith("Install bubblewrap")

    async def test_landlock_is_second_and_says_what_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: "")
        monkeypatch.setattr(landlock, "version", lambda: 5)
        monkeypatch.setattr(means.os, "uname", lambda: os.uname_result(("Linux", "n", "6.8", "v", "x86_64")))
        found = await means.find_means(("bubblewrap", "landlock"))
        assert found.kind == "landlock"
        assert "can be signalled" in found.why
        assert found.remedy.startswith("Install bubblewrap")

    async def test_an_old_landlock_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(landlock, "version", lambda: 2)
        found = await means.find_means(("landlock",))
        assert (found.kind, found.why) == ("none", "Landlock is version 2 of 3.")


@BUBBLEWRAP
class TestInBubblewrap:
    async def test_its_own_home_and_scratch_last_and_ours_are_not_there(self, place: Place) -> None:
        (place.home.state / "secret").write_text("CANARY")
        said = await place.says(f"echo kept > ~/a; echo kept > /tmp/b; ls -A {place.home.path} {place.home.state}; pwd")
        assert "CANARY" not in said
        assert "operant.yaml" not in said
        assert said.endswith(f"{place.workspace}\n")
        assert await place.says("cat ~/a /tmp/b; echo $HOME $TMPDIR") == "kept\nkept\n/home/agent /tmp\n"
        other = Agent(name="../other", workspace=str(place.workspace))
        assert (
            await place.says("ls ~ /tmp/b", agent=other)
            == "ls: cannot access '/tmp/b': No such file or directory\n/home/agent:\n"
        )
        assert not (place.home.state / "sandbox" / "other").exists()

    async def test_the_workspace_and_what_is_shared_are_writable_and_nothing_else(self, place: Place) -> None:
        said = await place.says(
            "echo 1 > mine; echo 2 > shared/ours; for d in / /usr /etc /dev /run /home; do touch $d/x; done"
        )
        assert said.count("Read-only file system") == 6, said
        assert (place.workspace / "mine").read_text() == "1\n"
        assert (place.home.shared / "ours").read_text() == "2\n"

    async def test_more_can_be_made_readable_and_writable(self, tmp_path: Path) -> None:
        for name in ("look", "change"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").write_text(f"{name}\n")
        settings = SandboxSettings(readable=(f"{tmp_path}/look", "/no/such"), writable=(f"{tmp_path}/change",))
        place = Place(tmp_path / "home", settings)
        said = await place.says(f"cd {tmp_path}; cat */file; echo new > look/file; echo new > change/file")
        assert said.startswith("change\nlook\n")
        assert (tmp_path / "look" / "file").read_text() == "look\n"
        assert (tmp_path / "change" / "file").read_text() == "new\n"

    async def test_a_path_around_our_home_does_not_open_it(self, tmp_path: Path) -> None:
        place = Place(tmp_path / "home", SandboxSettings(readable=(str(tmp_path),)))
        (place.home.state / "secret").write_text("CANARY")
        said = await place.says(
            f"cat {place.home.state}/secret {place.home.config}; ls {tmp_path} .; touch works; ls works"
        )
        assert "CANARY" not in said
        assert said.count("No such file") == 2
        assert said.endswith("works\n")

    async def test_an_inert_command_can_only_look(self, place: Place) -> None:
        (place.workspace / "file").write_text("text\n")
        full = Agent(name="operant", workspace=str(place.workspace), network=("*",))
        said = await place.says(
            "cat file; touch made; touch shared/made; touch ~/x; env | grep -ic proxy", agent=full, inert=True
        )
        assert said.startswith("text\n")
        assert said.count("Read-only") == 2
        assert said.endswith("\n0\n")
        assert await place.says("ls -A ~") == ""

    async def test_the_python_that_runs_us_runs_inside_with_our_package(self, place: Place) -> None:
        said = await place.says(f"{sys.executable} -I -c 'import operant.sdk; print(operant.__version__)'")
        assert said.count(".") >= 1, said
        assert "Traceback" not in said

    async def test_a_command_knows_nobody_and_nothing_beside_it(self, place: Place) -> None:
        said = await place.says(
            "id -un; hostname; ps -e --no-headers | wc -l; ls /proc/self/fd | tr '\\n' ' '; echo; cat /proc/net/dev"
        )
        name, host, processes, handles, *devices = said.splitlines()
        assert (name, host) == ("agent", "sandbox")
        assert int(processes) <= 5
        assert handles.split() == ["0", "1", "2", "3"]
        assert [line.split(":")[0].strip() for line in devices if ":" in line] == ["lo"]

    async def test_a_terminal_is_its_own(self, place: Place) -> None:
        async with place.launch("true", terminal=True) as launch:
            assert "--new-session" not in launch.argv
        async with place.launch("true") as launch:
            assert "--new-session" in launch.argv
            assert launch.contained

    async def test_a_program_has_time_to_tidy_up_and_then_none(self, place: Place) -> None:
        finished = await place.run("trap 'echo tidied; exit 7' TERM; sleep 60 & wait", timeout_s=0.4)
        assert (finished.timed_out, finished.output.head) == (True, "tidied\n")
        finished = await place.run("trap '' TERM; echo deaf; while :; do sleep 60; done", timeout_s=0.4)
        assert (finished.timed_out, finished.output.head) == (True, "deaf\n")
        assert finished.duration_s < 1.2

    async def test_cancelling_kills_all_within_a_second(self, place: Place) -> None:
        marker = f"cancelled-{os.getpid()}"
        stubborn = f"trap '' TERM; (setsid bash -c 'exec -a {marker} sleep 60' &); sleep 60"
        async with asyncio.TaskGroup() as group:
            task = group.create_task(place.run(stubborn))
            await until(lambda: bool(sleeping(marker)))
            begun = asyncio.get_running_loop().time()
            task.cancel()
        assert asyncio.get_running_loop().time() - begun < 1
        assert alive(marker) == []

    async def test_leaving_the_context_kills_what_its_caller_forgot(self, place: Place) -> None:
        marker = f"forgotten-{os.getpid()}"
        async with place.launch("/bin/bash", "-c", f"exec -a {marker} sleep 60") as launch:
            forgotten = await asyncio.create_subprocess_exec(
                *launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.fds
            )
            await until(lambda: bool(sleeping(marker)))
        assert sleeping(marker) == []
        await forgotten.wait()

    async def test_when_we_are_killed_everything_inside_dies(self, place: Place) -> None:
        marker = f"orphan-{os.getpid()}"
        command = f'(setsid bash -c "exec -a {marker} sleep 60" &); sleep 60'
        ours = (
            "import asyncio, sys; from pathlib import Path; from tests.app.test_confine import Place\n"
            f"asyncio.run(Place(Path(sys.argv[1])).says({command!r}))"
        )
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", ours, str(place.home.path))
        await until(lambda: bool(sleeping(marker)))
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await until(lambda: alive(marker) == [], 2)


def sleeping(marker: str) -> list[int]:
    """Return the programs that bear a name already, not those that are about to give it."""
    return [pid for pid in alive(marker) if comm(pid) == b"sleep\n"]


def comm(pid: int) -> bytes:
    """Return the name of a process, empty for one that has just ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.mark.skipif(landlock.version() < landlock.LEAST, reason="needs Landlock 3: a kernel from 6.2 on")
class TestUnderLandlock:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return Place(tmp_path / "home", SandboxSettings(by=("landlock",)))

    async def test_it_works_where_it_may_and_nowhere_else(self, place: Place) -> None:
        (place.home.state / "secret").write_text("CANARY")
        said = await place.says(
            f"echo 1 > mine; echo 2 > shared/ours; cat mine shared/ours; mktemp; cat {place.home.state}/secret "
            f"{place.home.config} /etc/shadow; ls {place.home.path} /root /tmp; git init -q . && git status -s"
        )
        assert said.startswith(f"1\n2\n{place.home.state}/sandbox/agents/operant/tmp/")
        assert "CANARY" not in said
        assert said.count("denied") == 6, said
        assert "?? RULES.md" in said

    async def test_it_has_no_network_whatever_is_set(self, place: Place) -> None:
        full = Agent(name="operant", workspace=str(place.workspace), network=("*",))
        said = await place.says("python3 -c 'import socket; socket.socket()'; env", agent=full)
        assert "PermissionError" in said
        assert "proxy" not in said.lower()

    async def test_an_inert_command_can_only_look(self, place: Place) -> None:
        said = await place.says("cat RULES.md; touch made", inert=True)
        assert said.startswith("# Rules")
        assert "denied" in said
