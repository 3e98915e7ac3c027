"""A real process that serves a home until somebody ends it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from operant.app.ask import ask
from operant.app.connect import connect, outcome
from operant.app.home import Home
from operant.kernel.records import Text
from operant.kernel.syscalls import SessionDispatch
from tests.app.stand_ins import chosen

SERVE = """
import asyncio, pathlib, sys
from operant.app.home import Home
from operant.app.serve import serve
from operant.kernel.errors import OperantError
from tests.app.stand_ins import chosen
async def ready(system):
    print("ready", flush=True)
try:
    sys.exit(asyncio.run(serve(Home(pathlib.Path(sys.argv[1])), chosen(), ready)))
except OperantError as error:
    sys.exit(error.line())
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / ("long" * 30) / "home")


@contextmanager
def served(home: Home) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(home.path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGHUP, 75)])
def test_a_signal_ends_it_and_the_log_says_why(home: Home, number: signal.Signals, code: int) -> None:
    with served(home) as process:
        process.send_signal(number)
        assert process.wait(10) == code
    assert f"stopping: signal {number.name}" in home.log.read_text("utf-8")
    assert not home.socket.exists()


def test_the_shutdown_syscall_ends_it(home: Home) -> None:
    with served(home) as process:
        assert ask(home.socket, "kernel.shutdown", {}) == {"result": None}
        assert process.wait(10) == 0


def test_a_second_one_exits_and_names_the_first(home: Home) -> None:
    with served(home) as process:
        second = subprocess.run(
            [sys.executable, "-c", SERVE, str(home.path)], capture_output=True, text=True, timeout=20, check=False
        )
        assert second.returncode == 1
        assert f"process {process.pid}" in second.stderr
        assert second.stderr.count("\n") == 1


async def test_after_a_kill_the_next_client_takes_over(home: Home) -> None:
    with served(home) as process:
        client = await connect(home, chosen())
        assert not client.hosting
        process.kill()
        process.wait()
        dispatched = await client.call(SessionDispatch(session="s", parts=(Text(text="hello"),), external_id="1"))
        assert client.hosting
        await outcome(client, dispatched)
        await client.close()


async def test_a_daemon_waits_for_a_command_that_holds_the_home_for_a_moment(home: Home) -> None:
    command = await connect(home, chosen())
    daemon = subprocess.Popen([sys.executable, "-c", SERVE, str(home.path)], stdout=subprocess.PIPE, text=True)
    try:
        await command.close()
        assert daemon.stdout
        assert await asyncio.to_thread(daemon.stdout.readline) == "ready\n"
    finally:
        daemon.kill()
        daemon.communicate()
