"""The tool `shell`: what a model sees of a command, and what a command sees of us."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.setup import setup
from operant.ext.tools.shell import base_environment
from tests.ext.tools.conftest import Bench, FakeHost


async def test_it_runs_in_the_workspace_and_shows_both_streams(bench: Bench, workspace: Path) -> None:
    said = await bench.call("shell", command="pwd -P; echo problem >&2; echo made > new.txt")
    assert (said.outcome, said.text) == ("ok", f"{workspace.resolve()}\nproblem\n".rstrip("\n"))
    assert (workspace / "new.txt").read_text() == "made\n"


async def test_its_output_is_seen_while_it_runs(bench: Bench) -> None:
    await bench.call("shell", command="echo one; sleep 0.1; printf '\\033[31mtwo\\n'")
    assert "".join(bench.live) == "one\ntwo\n"
    assert len(bench.live) > 1


async def test_a_failure_is_a_result_that_ends_with_its_code(bench: Bench) -> None:
    said = await bench.call("shell", command="echo words; exit 3")
    assert (said.outcome, said.text) == ("error", "words\nexit code 3")
    said = await bench.call("shell", command="printf words; kill -9 $$")
    assert (said.outcome, said.text) == ("error", "words\nended by signal 9")
    said = await bench.call("shell", command="sh -c 'kill -9 $$'; exit $?")
    assert said.text.endswith("exit code 137 (signal 9)")
    said = await bench.call("shell", command="true")
    assert (said.outcome, said.text) == ("ok", "(no output)")


async def test_a_timeout_is_told_with_what_was_said(bench: Bench) -> None:
    begun = time.monotonic()
    said = await bench.call("shell", command="echo begun; sleep 60", timeout_s=1)
    assert said.outcome == "timeout"
    assert said.text.startswith("begun\ntimed out after 1 s")
    assert time.monotonic() - begun < 2


async def test_cancelling_the_call_kills_the_command_within_a_second(bench: Bench, workspace: Path) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            bench.call("shell", command="trap '' TERM; echo ready; sleep 1.5; touch survived; sleep 60")
        )
        async with asyncio.timeout(5):
            while not bench.live:
                await asyncio.sleep(0)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert time.monotonic() - begun < 1
    said = await bench.call("shell", command="sleep 1; ls")
    assert said.text == "(no output)"


async def test_no_key_of_ours_is_in_its_environment(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "CANARY-1")
    monkeypatch.setenv("OPERANT_HOME", "CANARY-2")
    monkeypatch.setenv("BASH_ENV", "CANARY-3")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("MY_REGION", "north")
    monkeypatch.setenv("LC_TIME", "C")
    host = FakeHost()
    host.more_environment = {"FROM_THE_HOOK": "yes"}
    async with setup(host, ToolsSettings(env=("MY_REGION",))):  # type: ignore[arg-type]
        said = await Bench(workspace, host).call("shell", command="env; cat /proc/$$/environ")
    assert "CANARY" not in said.text
    assert "LD_PRELOAD" not in said.text
    for line in ("MY_REGION=north", "LC_TIME=C", "FROM_THE_HOOK=yes", "TERM=dumb"):
        assert line in said.text.splitlines()


def test_the_environment_is_an_allow_list() -> None:
    made = base_environment({"PATH": "/bin", "PYTHONPATH": "/evil", "GITHUB_TOKEN": "x", "LC_ALL": "C"}, ())
    assert set(made) == {"PATH", "LC_ALL", "LANG", "TERM", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "NO_COLOR"}
    assert made["PATH"] == "/bin"


async def test_its_directory_is_confined(bench: Bench, workspace: Path, shared: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "out").symlink_to("/etc")
    assert (await bench.call("shell", command="pwd -P", cwd="sub")).text == str(workspace.resolve() / "sub")
    assert (await bench.call("shell", command="pwd -P", cwd="shared")).text == str(shared.resolve())
    for cwd in ("..", "/etc", "out", "none", "sub/../.."):
        said = await bench.call("shell", command="touch ran", cwd=cwd)
        assert said.outcome == "error"
    assert not (workspace / "ran").exists()


async def test_binary_output_is_text_without_control_characters(bench: Bench) -> None:
    said = await bench.call("shell", command=r"head -c 3000 /bin/sh; printf '\000\033[2J\007'")
    assert not any(ord(char) < 32 and char not in "\n\t" for char in said.text)
    assert said.text.endswith("\u2400\u2407")
    said.text.encode()


async def test_an_output_over_the_limit_is_cut_and_can_be_paged(bench: Bench) -> None:
    said = await bench.call("shell", command="seq 1 5000; exit 2")
    assert len(said.text) <= 4000
    assert said.text.startswith("1\n2\n")
    assert said.text.endswith("5000\nexit code 2")
    (blob,) = said.artifacts
    assert f"read_output digest={blob.digest}" in said.text
    numbers = "".join(f"{number}\n" for number in range(1, 5001))
    assert bench.host.blobs.kept[blob.digest].decode() == numbers


async def test_a_flood_is_spooled_up_to_its_cap(workspace: Path) -> None:
    host = FakeHost()
    async with setup(host, ToolsSettings(max_spool_bytes=100_000)):  # type: ignore[arg-type]
        said = await Bench(workspace, host).call("shell", command="yes | head -c 20000000; echo end; exit 1")
    assert len(said.text) <= 4000
    assert said.text.startswith("y\ny\n")
    assert said.text.endswith("end\nexit code 1")
    assert "20,000,004 bytes in all, the first 100,000 kept" in said.text
    assert [blob.size for blob in said.artifacts] == [100_000]


async def test_what_cannot_run_is_said(bench: Bench, workspace: Path) -> None:
    assert "NUL" in (await bench.call("shell", command="a\0b")).text
    workspace.rmdir()
    said = await bench.call("shell", command="true")
    assert (said.outcome, "does not exist" in said.text) == ("error", True)
