"""Real parents with a stand-in for the daemon, and one with the daemon itself."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import IO

import pytest

from operant.app import serve
from operant.app.home import Home
from operant.app.supervise import REFUSED, RESTART, Course, Rules, command_line
from operant.sdk.testing.server import ScriptedServer
from tests.cli.process import Operant

PARENT = """
import sys
from operant.app.supervise import Rules, supervise
sys.exit(supervise(sys.argv[2:], Rules(first_s=float(sys.argv[1]))))
"""
ADOPTS = "import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER, as process 1 does\n"
WAITS = """
import os, signal, sys
def told(number, frame):
    os.write(1, b"told %s\\n" % signal.Signals(number).name.encode())  # print() must not be interrupted by itself
    sys.exit({SIGHUP})
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, told)
os.write(1, b"ready\\n")
while True:
    signal.pause()
""".replace("{SIGHUP}", "75 if number == signal.SIGHUP else 0")
LEAVES_AN_ORPHAN = """
import os, signal, sys
reader, writer = os.pipe()
if os.fork() == 0:
    orphan = os.fork()
    if orphan:
        os.write(writer, str(orphan).encode())
    os._exit(0)
os.wait()
orphan = os.read(reader, 20).decode()
while os.path.exists("/proc/" + orphan):
    pass
print("buried", flush=True)
"""
PATIENCE_S = 20.0
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has gone")


@contextmanager
def supervised(*argv: str, first_s: float = 0.0, parent: str = PARENT) -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", parent, str(first_s), *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # so that no line waits where `select` does not see it
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()  # the child goes with it


def script(words: str) -> list[str]:
    """Return a daemon of a few words of shell."""
    return ["/bin/sh", "-c", words]


def python(words: str) -> list[str]:
    """Return a daemon of a few words of Python."""
    return [sys.executable, "-I", "-S", "-c", words]


def line(stream: IO[bytes] | None) -> str:
    """Return the next line of a process, soon."""
    assert stream
    assert select.select([stream], [], [], PATIENCE_S)[0], "nothing was said"
    return stream.readline().decode().rstrip("\n")


def until(stream: IO[bytes] | None, words: str) -> None:
    """Read until a line has these words in it."""
    while words not in (said := line(stream)):
        assert said, f"ended without {words!r}"


def ended(process: subprocess.Popen[bytes]) -> tuple[int, list[str], list[str]]:
    """Return the exit code and what is left of both streams."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out.decode().splitlines(), err.decode().splitlines()


def lives(tmp_path: Path, *ends: str) -> list[str]:
    """Return a daemon whose first life ends with the first words, the second with the second, and so on."""
    book = tmp_path / "lives"
    cases = " ".join(f"{number}) {words};;" for number, words in enumerate(ends, 1))
    return script(f"echo x >> '{book}'; n=$(($(wc -l < '{book}'))); echo life $n; case $n in {cases} esac")


# ---------------------------------------------------------------------------------------------- the course


def test_the_number_for_another_start_is_the_daemons() -> None:
    assert serve.RESTART == RESTART


@pytest.mark.parametrize("code", [0, 2, 3])
def test_what_ended_on_purpose_or_by_a_mistake_stays_ended(code: int) -> None:
    assert Course(Rules()).after(code, 0.1, 0.0) is None


def test_a_crash_waits_longer_each_time_until_one_life_was_long() -> None:
    course = Course(Rules())
    waits = [course.after(-9, 5.0, float(now)) for now in range(8)]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert course.after(70, 60.0, 100.0) == 0.5
    assert course.after(70, 1.0, 101.0) == 1.0


def test_to_be_asked_for_another_start_forgets_the_crashes() -> None:
    course = Course(Rules())
    assert [course.after(code, 5.0, 0.0) for code in (-11, -11, RESTART, -11)] == [0.5, 1.0, 0.0, 0.5]


def test_a_failure_at_once_five_times_within_a_minute_is_the_last() -> None:
    course = Course(Rules())
    assert [course.after(1, 0.3, now) for now in (0.0, 1.0, 3.0, 7.0, 59.0)] == [0.5, 1.0, 2.0, 4.0, None]


def test_failures_that_are_rare_or_come_late_are_crashes() -> None:
    rare, late = Course(Rules()), Course(Rules())
    assert all(rare.after(1, 0.3, now * 20.0) is not None for now in range(20))
    assert all(late.after(1, 2.0, float(now)) is not None for now in range(20))


def test_the_daemon_is_the_same_program_on_the_same_home() -> None:
    assert command_line()[1:] == ["-P", "-m", "operant", "serve"]
    assert command_line("/a b")[4:] == ["--home", "/a b", "serve"]


# ---------------------------------------------------------------------------------------------- real processes


def test_it_is_started_again_until_it_ends_by_itself(tmp_path: Path) -> None:
    with supervised(*lives(tmp_path, "exit 75", "kill -9 $$", "exit 70", "exit 0")) as process:
        code, out, err = ended(process)
    assert (code, out) == (0, ["life 1", "life 2", "life 3", "life 4"])
    reasons = ["asked for another start", "was ended by SIGKILL", "ended with code 70"]
    assert len(err) == 3
    for said, reason in zip(err, reasons, strict=True):
        assert reason in said
        assert "started again at once" in said
        assert said.startswith("operant: 2")


@pytest.mark.parametrize("code", [2, 3])
def test_a_mistake_is_handed_on(code: int) -> None:
    with supervised(*script(f"exit {code}")) as process:
        assert ended(process) == (code, [], [])


def test_one_that_fails_at_once_is_given_up() -> None:
    with supervised(*script("echo life; exit 1")) as process:
        code, out, err = ended(process)
    assert (code, len(out), len(err)) == (1, 5, 5)
    assert "failed 5 times" in err[-1]


def test_a_program_that_cannot_be_started_is_named() -> None:
    with supervised("/nowhere/python", first_s=30.0) as process:
        assert "/nowhere/python cannot be started: No such file" in line(process.stderr)
        assert "started again in 30 s" in line(process.stderr)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_end_is_passed_on_once_and_waited_for(number: signal.Signals) -> None:
    with supervised(*python(WAITS)) as process:
        assert line(process.stdout) == "ready"
        process.send_signal(number)
        assert ended(process) == (0, [f"told {number.name}"], [])


def test_one_that_knows_no_signals_yet_is_ended_all_the_same() -> None:
    with supervised(*python("import signal; print('ready', flush=True); signal.pause()")) as process:
        assert line(process.stdout) == "ready"
        process.terminate()
        assert ended(process) == (0, [], [])


def test_what_it_ends_with_after_being_told_is_handed_on() -> None:
    with supervised(*python(WAITS.replace("else 0", "else 5"))) as process:
        assert line(process.stdout) == "ready"
        process.terminate()
        assert ended(process)[0] == 5


def test_a_hangup_is_another_start() -> None:
    with supervised(*python(WAITS), first_s=30.0) as process:
        for _ in range(3):
            assert line(process.stdout) == "ready"
            process.send_signal(signal.SIGHUP)
            assert line(process.stdout) == "told SIGHUP"
            assert "asked for another start" in line(process.stderr)
        assert line(process.stdout) == "ready"
        process.terminate()
        assert ended(process)[0] == 0


def test_a_hangup_before_it_knows_signals_is_another_start() -> None:
    with supervised(*python("import signal; print('ready', flush=True); signal.pause()"), first_s=30.0) as process:
        assert line(process.stdout) == "ready"
        process.send_signal(signal.SIGHUP)
        assert "SIGHUP" in line(process.stderr)
        assert line(process.stdout) == "ready"


def test_a_person_need_not_wait_for_the_pause(tmp_path: Path) -> None:
    with supervised(*lives(tmp_path, "exit 70", "exit 70"), first_s=30.0) as process:
        assert "in 30 s" in line(process.stderr)
        process.send_signal(signal.SIGHUP)
        assert [line(process.stdout), line(process.stdout)] == ["life 1", "life 2"]
        assert "in 30 s" in line(process.stderr)
        process.terminate()
        assert ended(process)[0] == 0


@on_linux
def test_it_dies_with_its_parent() -> None:
    with supervised(*python(WAITS)) as process:
        assert line(process.stdout) == "ready"
        process.kill()
        assert line(process.stdout) == "told SIGTERM"
        assert process.stdout
        assert process.stdout.read() == b""  # its end has closed the pipe


@on_linux
def test_orphans_are_buried() -> None:
    with supervised(*python(LEAVES_AN_ORPHAN), parent=ADOPTS + PARENT) as process:
        assert ended(process) == (0, ["buried"], [])


def test_a_terminal_that_has_gone_does_not_end_it(tmp_path: Path) -> None:
    with supervised(*lives(tmp_path, "exit 75", "exit 75", "exit 0")) as process:
        assert process.stderr
        process.stderr.close()
        assert process.wait(PATIENCE_S) == 0
    assert (tmp_path / "lives").read_text() == "x\n" * 3


# ---------------------------------------------------------------------------------------------- the daemon


@pytest.mark.slow
def test_the_daemon_comes_back_after_a_hangup_and_after_a_kill(tmp_path: Path) -> None:
    operant = Operant(tmp_path / "home")
    with subprocess.Popen(
        [sys.executable, "-m", "operant", "--home", str(operant.home), "serve", "--supervised"],
        env=operant.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # so that no line waits where `select` does not see it
    ) as process:
        try:
            until(process.stdout, "Operant is ready")
            process.send_signal(signal.SIGHUP)
            until(process.stderr, "asked for another start")
            until(process.stdout, "Operant is ready")
            holder = Home(operant.home).holder()
            assert holder
            os.kill(holder.pid, signal.SIGKILL)
            until(process.stderr, "SIGKILL")
            until(process.stdout, "Operant is ready")
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
        finally:
            if process.poll() is None:
                process.kill()
    assert "stopping: signal SIGTERM" in (operant.home / "logs" / "operant.log").read_text("utf-8")


def test_a_package_that_was_changed_meanwhile_is_not_started_again(tmp_path: Path) -> None:
    parent = PARENT.replace(
        "sys.exit(supervise(sys.argv[2:], Rules(first_s=float(sys.argv[1]))))",
        "import operant.app.supervise as it\n"
        "it.objection = lambda before: 'operant/kernel/gate.py'\n"
        "sys.exit(supervise(sys.argv[2:], Rules(first_s=float(sys.argv[1]), installing_s=0.0)))",
    )
    with supervised(*lives(tmp_path, "exit 75", "exit 0"), parent=parent) as process:
        code, out, err = ended(process)
    assert code == REFUSED
    assert out == ["life 1"]
    assert "operant/kernel/gate.py is not what was installed" in err[-1]


async def test_an_agent_has_the_daemon_started_again_and_goes_on(tmp_path: Path) -> None:
    script = {
        "again": [{"calls": [{"name": "use_tool", "arguments": RESTARTING}]}, {"text": "See you."}],
        "after": [{"text": "I am back."}],
    }
    operant = Operant(tmp_path / "home")
    operant("init")
    server = ScriptedServer(script)
    async with server.serving():
        provider = f"providers: {{scripted: {{base_url: '{server.url}'}}}}\n"
        agent = "defaults: {models: [scripted/one], approval: {'*': allow}}\ngateway: {port: 0}\n"
        (operant.home / "operant.yaml").write_text(provider + agent)
        arguments = [sys.executable, "-m", "operant", "serve", "--supervised"]
        with subprocess.Popen(arguments, env=operant.env, stdout=PIPE, stderr=PIPE, bufsize=0) as process:
            try:
                await asyncio.to_thread(until, process.stdout, "is ready")
                ran = await asyncio.to_thread(operant, "run", "@again", "--session", "s")
                assert ran.out.strip() == "See you."
                await asyncio.to_thread(until, process.stderr, "asked for another start")
                await asyncio.to_thread(until, process.stdout, "is ready")
                shown = ""
                async with asyncio.timeout(PATIENCE_S):
                    while "I am back." not in shown:
                        shown = (await asyncio.to_thread(operant, "session", "show", "s")).out
            finally:
                process.terminate()
                process.wait(PATIENCE_S)
    assert shown.count("Look again.") == 1


RESTARTING = {"name": "restart", "arguments": {"continue_with": "@after Look again."}}
