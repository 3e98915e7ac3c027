"""The socket: the same calls for every program of this user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from operant.app.ask import ask
from operant.app.build import System
from operant.app.connect import connect, outcome
from operant.app.daemon import hosted
from operant.app.home import Home
from operant.kernel.errors import NotFound, Unavailable
from operant.kernel.records import Event, Text, TurnEnded
from operant.kernel.syscalls import KernelStatus, SessionDispatch, SessionGet, SessionHistory, SessionList
from operant.kit.endpoint import listen
from operant.kit.jsonrpc import LONGEST
from operant.sdk.remote import Lost
from tests.app.stand_ins import chosen


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
async def system(home: Home) -> AsyncGenerator[System]:
    async with hosted(home, chosen()) as system:
        yield system


class Wire:
    """The bare socket, a line at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def write(self, text: str) -> None:
        self._writer.write(text.encode() + b"\n")

    def ask(self, number: Any, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))

    async def read(self) -> Any:
        async with asyncio.timeout(5):
            line = await self._reader.readline()
        return json.loads(line) if line else None


@asynccontextmanager
async def wired(home: Home) -> AsyncGenerator[Wire]:
    reader, writer = await asyncio.open_unix_connection(str(home.socket), limit=1 << 26)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def hello(session: str = "s", **more: Any) -> SessionDispatch:
    return SessionDispatch(session=session, parts=(Text(text="hello"),), **more)


async def test_a_call_over_the_socket_is_answered_with_its_id(home: Home, system: System) -> None:
    async with wired(home) as wire:
        wire.ask("a", "kernel.status")
        answer = await wire.read()
    assert answer["id"] == "a"
    assert answer["result"]["ready"] is True
    assert answer["result"]["extensions"] == ["policy", "store"]


async def test_errors_carry_code_and_hint(home: Home, system: System) -> None:
    async with wired(home) as wire:
        wire.ask(1, "no.such")
        wire.ask(2, "session.get", session="nobody")
        wire.ask(3, "session.get", sesion="s")
        answers = {answer["id"]: answer["error"] for answer in [await wire.read() for _ in range(3)]}
    assert answers[1]["code"] == -32601
    assert answers[2]["code"] == -32000
    assert answers[2]["data"]["code"] == "not_found"
    assert answers[3]["data"]["code"] == "invalid"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", -32700),
        ("", -32700),
        ("\x00\x01", -32700),
        ("[1]", -32600),
        ('{"id": 1}', -32600),
        ('{"method": "kernel.status"}', -32600),
        ('{"id": 1, "method": "cancel", "params": 7}', -32600),
    ],
)
async def test_what_is_no_request_is_refused_and_the_connection_goes_on(
    home: Home, system: System, line: str, code: int
) -> None:
    async with wired(home) as wire:
        wire.write(line)
        assert (await wire.read())["error"]["code"] == code
        wire.ask(2, "kernel.status")
        assert (await wire.read())["id"] == 2


async def test_a_line_that_is_too_long_ends_its_connection_only(home: Home, system: System) -> None:
    async with wired(home) as other, wired(home) as wire:
        wire.write("x" * (LONGEST + 10))
        assert (await wire.read())["error"]["code"] == -32600
        assert await wire.read() is None
        other.ask(1, "kernel.status")
        assert (await other.read())["id"] == 1


async def test_the_socket_is_private(home: Home, system: System) -> None:
    assert home.socket.stat().st_mode & 0o777 == 0o600
    assert home.socket.parent.stat().st_mode & 0o777 == 0o700


async def test_a_process_of_another_user_is_hung_up_on(
    home: Home, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operant.app.daemon.same_user", lambda _connection: False)
    async with wired(home) as wire:
        assert await wire.read() is None


async def test_following_resumes_at_a_seq_without_gap_or_repeat(home: Home, system: System) -> None:
    client = await connect(home, chosen())
    try:
        assert not client.hosting
        await outcome(client, await client.call(hello()))
        events = await client.call(SessionHistory(session="s"))
        async with wired(home) as wire:
            wire.ask(7, "kernel.events", session="s", after=2)
            assert (await wire.read())["result"] == {"subscription": 7}
            seqs = [(await wire.read())["params"]["event"]["seq"] for _ in events[2:]]
            assert seqs == [event.seq for event in events[2:]]
            wire.ask(8, "cancel", id=7)
            assert (await wire.read())["result"] is True
            wire.ask(9, "cancel", id=7)
            assert (await wire.read())["result"] is False
    finally:
        await client.close()


async def test_bodies_keep_their_types_across_the_socket(home: Home, system: System) -> None:
    client = await connect(home, chosen())
    try:
        end = await outcome(client, await client.call(hello()))
        assert isinstance(end.body, TurnEnded)
        there = await system.kernel.store.events("s")
        assert list(await client.call(SessionHistory(session="s"))) == list(there)
        with pytest.raises(NotFound):
            await client.call(SessionGet(session="nobody"))
    finally:
        await client.close()


async def test_a_reader_that_never_reads_does_not_hold_up_others(home: Home, system: System) -> None:
    async with wired(home) as deaf, wired(home) as wire:
        for number in range(300):
            deaf.ask(number, "kernel.status")
        wire.ask(1, "kernel.status")
        assert (await wire.read())["id"] == 1


async def test_a_fault_of_ours_ends_one_request(home: Home, system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(system.kernel.store, "sessions", fail)
    async with wired(home) as wire:
        wire.ask(1, "session.list")
        assert (await wire.read())["error"]["data"]["code"] == "broken"
        wire.ask(2, "kernel.status")
        assert "result" in await wire.read()


async def test_without_a_system_connect_runs_one_that_others_can_use(home: Home) -> None:
    client = await connect(home, chosen())
    try:
        assert client.hosting
        second = await connect(home, chosen())
        assert not second.hosting
        assert (await second.call(KernelStatus())).ready
        await second.close()
    finally:
        await client.close()
    assert not home.socket.exists()


async def test_when_the_host_ends_a_follower_takes_the_home_over_and_sees_the_turn_end(home: Home) -> None:
    host = await connect(home, chosen())
    client = await connect(home, chosen())
    seen: list[Event] = []

    async def watch() -> None:
        async for one in client.follow("s", 0):
            if isinstance(one, Event):
                seen.append(one)
            if isinstance(one, Event) and isinstance(one.body, TurnEnded):
                return

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(watch())
        assert (await client.call(KernelStatus())).ready
        await host.close()
        await client.call(KernelStatus())
        assert client.hosting
        await client.call(hello())
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    await client.close()


async def test_a_call_that_may_have_been_done_is_not_repeated(home: Home) -> None:
    home.init()

    async def take_and_die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        server.close()
        home.socket.unlink()
        writer.close()

    server = await asyncio.start_server(take_and_die, sock=listen(home.socket))
    client = await connect(home, chosen())
    with pytest.raises(Lost):
        await client.call(hello())
    assert client.hosting
    assert await client.call(SessionList()) == ()
    await client.close()


async def test_a_message_with_an_external_id_is_sent_again_and_taken_once(home: Home) -> None:
    host = await connect(home, chosen())
    client = await connect(home, chosen())
    await host.close()
    dispatched = await client.call(hello(external_id="1"))
    again = await client.call(hello(external_id="1"))
    assert (again.inbox_id, again.repeat) == (dispatched.inbox_id, True)
    assert isinstance((await outcome(client, again)).body, TurnEnded)
    await client.close()


async def test_ask_needs_nothing_but_a_socket(home: Home) -> None:
    assert ask(home.socket, "kernel.status", {}) is None
    async with hosted(home, chosen()):
        answer = await asyncio.to_thread(ask, home.socket, "kernel.status", {})
        assert answer and answer["result"]["ready"] is True
        with pytest.raises(NotFound):
            await asyncio.to_thread(ask, home.socket, "session.get", {"session": "nobody"})
    assert ask(home.socket, "kernel.status", {}) is None


async def test_a_socket_that_never_answers_is_said_to(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operant.app.connect.WAIT_S", 0.05)
    with home.lock(lambda: 0), pytest.raises(Unavailable, match="does not answer"):
        await connect(home, chosen())
