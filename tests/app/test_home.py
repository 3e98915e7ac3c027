"""The home: private, made once, run by one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from operant.app.home import Home
from operant.kernel.errors import Conflict, Unavailable

HOLD = """
import sys, pathlib
from operant.app.home import Home
with Home(pathlib.Path(sys.argv[1])).lock(lambda: 7):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def snapshot(home: Home) -> dict[str, str]:
    return {str(path): path.read_text("utf-8") for path in sorted(home.path.rglob("*")) if path.is_file()}


def test_a_home_is_found_by_the_environment(tmp_path: Path) -> None:
    assert Home.find({"OPERANT_HOME": str(tmp_path)}).path == tmp_path
    assert Home.find({}).path == Path.home() / ".operant"


def test_init_makes_the_whole_layout_and_nothing_twice(home: Home) -> None:
    made = home.init()
    assert {path.name for path in made} >= {"operant.yaml", "SYSTEM.md", "AGENT.md", "SOUL.md", "MEMORY.md", "shared"}
    assert (home.agents / "operant" / "workspace" / "shared").resolve() == home.shared
    assert home.init() == ()


def test_init_overwrites_nothing(home: Home) -> None:
    home.init()
    home.config.write_text("defaults: {max_steps: 1}\n", "utf-8")
    (home.agents / "operant" / "AGENT.md").write_text("mine", "utf-8")
    (home.agents / "operant" / "workspace" / "SOUL.md").unlink()
    before = snapshot(home)
    home.init()
    assert before.items() <= snapshot(home).items()


def test_init_does_not_bring_back_an_agent_that_was_removed(home: Home) -> None:
    home.init()
    (home.agents / "operant").rename(home.agents / "other")
    home.init()
    assert not (home.agents / "operant").exists()


def test_everything_is_private_whatever_the_umask(home: Home) -> None:
    before = os.umask(0)
    try:
        home.init()
        home.path.chmod(0o755)
        home.config.chmod(0o644)
        home.init()
    finally:
        os.umask(before)
    modes = {path: path.lstat().st_mode & 0o777 for path in [home.path, *home.path.rglob("*")] if not path.is_symlink()}
    assert {path for path, mode in modes.items() if mode & 0o077} == set()


def test_the_system_prompt_of_a_new_home_is_short(home: Home) -> None:
    home.init()
    agent = home.agents / "operant"
    files = [home.preamble, agent / "AGENT.md", *(agent / "workspace").glob("*.md")]
    assert sum(len(file.read_text("utf-8")) for file in files) / 4 <= 900


def test_a_home_that_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(Unavailable, match="cannot be made"):
        Home(tmp_path / "file" / "home").init()


def hold(home: Home) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_told_who_the_first_one_is(home: Home) -> None:
    with hold(home) as first:
        with pytest.raises(Conflict, match=f"process {first.pid}"), home.lock(lambda: 0):
            pytest.fail("two processes hold one home")
        holder = home.holder()
        assert holder and (holder.pid, holder.since, holder.socket) == (first.pid, 7, str(home.socket))
        first.communicate("")
    with home.lock(lambda: 9):
        assert json.loads(home.lock_file.read_bytes())["pid"] == os.getpid()
    assert home.holder() is None


def test_a_killed_process_never_blocks_the_next(home: Home) -> None:
    with hold(home) as first:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    with home.lock(lambda: 0):
        holder = home.holder()
        assert holder and holder.pid == os.getpid()


def test_words_of_another_program_in_the_lock_do_no_harm(home: Home) -> None:
    home.init()
    home.lock_file.write_bytes(b"[1, 2")
    with home.lock(lambda: 0):
        assert home.holder()
