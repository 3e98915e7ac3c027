"""`operant mcp …` as programs and people use it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import aiohttp
import pytest

from tests.cli.process import Operant
from tests.ext.mcp.authority import Authority, guarded
from tests.ext.mcp.house import ROOT, sent_back


@pytest.fixture
def peer(operant: Operant) -> list[str]:
    """Return the words that add a server, and write down what it has."""
    operant("init")
    plan(operant, echo="Say it again.")
    env = ["--env", f"PEER={operant.home.parent / 'peer.json'}", "--env", f"PYTHONPATH={ROOT}"]
    return ["mcp", "add", "peer", *env, "--", sys.executable, "-m", "tests.ext.mcp.peer"]


def plan(operant: Operant, **tools: str) -> None:
    (operant.home.parent / "peer.json").write_text(json.dumps({"tools": tools}))


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_server_from_adding_to_removing(operant: Operant, peer: list[str]) -> None:
    with operant.serving():  # so that the SDK is imported once
        assert "There are no servers" in operant("mcp", "list").out
        assert "operant mcp test peer" in operant(*peer).out
        assert operant("mcp", "list", "--json").json()[0]["source"] == "mcp.json"
        shown = operant("mcp", "test", "peer")
        assert shown.code == 0 and "mcp__peer__echo" in shown.out and "Say it again." in shown.out
        plan(operant, echo="Say it to me.")
        assert "operant mcp approve peer" in operant("mcp", "test", "peer").out
        assert operant("mcp", "approve", "peer", "--json").json() == {"name": "peer", "approved": ["echo"]}
        assert operant("mcp", "approve", "peer").out == "Nothing had changed.\n"
        assert operant("mcp", "remove", "peer").code == 0
        assert operant("mcp", "test", "peer").code == 4


def test_what_cannot_be_is_one_line(operant: Operant) -> None:
    operant("init")
    assert operant("mcp", "add", "x").code == 2
    assert operant("mcp", "add", "x", "--url", "http://a", "--", "program").code == 2
    assert operant("mcp", "add", "a b", "--url", "http://127.0.0.1:1/").code == 2
    assert operant("mcp", "add", "x", "--env", "NAME", "--", "program").code == 2
    assert operant("mcp", "add", "gone", "--", "/no/such/program").code == 0
    again = operant("mcp", "add", "gone", "--", "/another/program")
    assert again.code == 0 and again.out.startswith("gone is there, in place of /no/such/program. ")
    assert operant("mcp", "add", "gone", "--", "/no/such/program").code == 0
    nowhere = operant("mcp", "add", "nowhere", "--url", "foo")
    assert nowhere.code == 2 and "This is not an address" in nowhere.err
    assert operant("mcp", "add", "quiet", "--", "/bin/true").code == 0
    ended = operant("mcp", "test", "quiet")
    assert ended.err.endswith("cannot be used: it ended before it answered.\n")
    failed = operant("mcp", "test", "gone")
    assert failed.code == 1 and failed.err.count("\n") == 1 and "/no/such/program" in failed.err


class Terminal:
    """A login in a terminal, while a browser is at hand."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.err = ""

    async def address(self) -> str:
        """Return what a person is asked to open."""
        assert self.process.stderr is not None
        async with asyncio.timeout(30):
            while not (line := (await self.process.stderr.readline()).decode()).startswith("http"):
                assert line, self.err
                self.err += line
        return line.strip()

    async def end(self, pasted: str = "") -> tuple[int, str, str]:
        async with asyncio.timeout(30):
            out, err = await self.process.communicate(f"{pasted}\n".encode() if pasted else None)
        return self.process.returncode or 0, out.decode(), self.err + err.decode()


@asynccontextmanager
async def logging_in(operant: Operant, *words: str) -> AsyncIterator[Terminal]:
    program = [sys.executable, "-m", "operant", "mcp", "login", "notes", *words]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*program, env=operant.env, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        yield Terminal(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def notes(operant: Operant, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Authority]:
    """Have a server that wants a login."""
    await asyncio.to_thread(operant, "init")
    plan(operant, echo="Say it again.")
    monkeypatch.setenv("PEER", str(operant.home.parent / "peer.json"))
    authority = Authority()
    async with guarded(authority) as url:
        await asyncio.to_thread(operant, "mcp", "add", "notes", "--url", url)
        yield authority


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("daemon", [True, False])
async def test_a_login_in_a_browser(operant: Operant, notes: Authority, daemon: bool) -> None:
    with ExitStack() as stack:
        if daemon:
            stack.enter_context(operant.serving())
        failed = await asyncio.to_thread(operant, "mcp", "test", "notes")
        assert failed.code == 1 and failed.err.count("\n") == 1 and "operant mcp login notes" in failed.err
        if daemon:
            assert "notes: it wants a login" in (await asyncio.to_thread(operant, "doctor")).out
        async with logging_in(operant) as terminal, aiohttp.ClientSession() as browser:
            back = await sent_back(await terminal.address())
            for wrong in (back.partition("?")[0], back.replace("state=", "state=x"), back.replace("/callback", "/")):
                async with browser.get(wrong) as answer:
                    assert answer.status == 404
            async with browser.get(back) as answer:
                assert answer.status == 200 and "You can close this page" in await answer.text()
            code, out, err = await terminal.end()
        assert (code, out) == (0, "notes is connected: 1 tool.\n"), err
        assert "Traceback" not in err
        shown = await asyncio.to_thread(operant, "mcp", "test", "notes")
        assert shown.code == 0 and "logged in" in shown.out
        doctor = await asyncio.to_thread(operant, "doctor")
        assert not daemon or "mcp       notes\n" in doctor.out
        assert (await asyncio.to_thread(operant, "mcp", "logout", "notes")).out == "The login to notes is forgotten.\n"
        assert (await asyncio.to_thread(operant, "mcp", "logout", "notes")).out == "There was no login to notes.\n"


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_login_with_a_browser_elsewhere_and_one_that_is_refused(operant: Operant, notes: Authority) -> None:
    with operant.serving():
        async with logging_in(operant, "--paste", "--json") as terminal:
            code, out, _ = await terminal.end(await sent_back(await terminal.address()))
        assert code == 0 and json.loads(out)["login"] is True
        async with logging_in(operant, "--paste") as terminal:
            await terminal.address()
            code, _, err = await terminal.end("http://127.0.0.1/?code=1")
        assert code == 2 and "whole address" in err
        notes.denies = True
        async with logging_in(operant) as terminal, aiohttp.ClientSession() as browser:
            async with browser.get(await terminal.address()) as answer:
                assert "The login was refused" in await answer.text()
            code, _, err = await terminal.end()
        assert code == 1 and "access_denied" in err and "\x1b" not in err
        with socket.create_server(("127.0.0.1", 0)) as taken:
            async with logging_in(operant, "--port", str(taken.getsockname()[1])) as terminal:
                code, _, err = await terminal.end()
        assert code == 1 and "--port" in err


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_login_is_given_up_by_ctrl_c(operant: Operant, notes: Authority) -> None:
    def give_up() -> int:
        with operant.terminal("mcp", "login", "notes", "--paste") as terminal:
            terminal.wait("Paste its address here")
            terminal.program.send_signal(signal.SIGINT)
            return terminal.end()

    assert await asyncio.to_thread(give_up) == 130
