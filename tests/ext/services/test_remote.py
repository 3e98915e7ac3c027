"""A service that runs elsewhere: the same wire as text frames of a WebSocket, behind the gateway's door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect

from operant.kernel.records import OWNER
from operant.kernel.syscalls import ServiceGrant, ServiceRevoke
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import House, write_skill
from tests.journey.gateway import Served, served

ALLOW: dict[str, Any] = {"agents": {"operant": {"approval": {"shell": "allow", "*": "allow"}}}}


class Elsewhere:
    """A service by hand, over a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def register(self, **wanted: Any) -> dict[str, Any]:
        await self.send(id=1, method="register", params={"protocol": "svc/1", "token": "", **wanted})
        return json.loads(await self._socket.recv())

    async def send(self, **message: Any) -> None:
        await self._socket.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def serve(self) -> None:
        """Refuse what is bad, let everything else pass."""
        async for text in self._socket:
            asked = json.loads(text)
            if asked.get("method") == "shutdown":
                return
            bad = "bad" in asked.get("params", {}).get("output", {}).get("arguments", {}).get("command", "")
            if "id" in asked:
                await self.send(id=asked["id"], result={"verdict": "reject", "reason": "from afar"} if bad else None)


@asynccontextmanager
async def there(home: Path, server: ScriptedServer) -> AsyncIterator[tuple[Served, House]]:
    write_skill(home, "afar", {}, service="remote", hooks="tool.before")
    async with served(home, server, ALLOW) as made:
        house = House(made.system)
        yield made, house


@asynccontextmanager
async def connected(made: Served, token: str, name: str = "afar") -> AsyncIterator[Elsewhere]:
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(f"{made.ws}/ws/services/{name}", additional_headers=headers) as socket:
        yield Elsewhere(socket)


async def test_it_guards_while_it_is_there_and_refuses_while_it_is_not(tmp_path: Path, server: ScriptedServer) -> None:
    async with there(tmp_path / "h", server) as (made, house):
        token = await made.add_token("far", "service:afar")
        assert "fine" in await house.shell("echo fine"), "it was not allowed yet"
        info = await house.grant("afar")
        assert (info.state, info.reason) == ("waiting", "it has not connected")
        assert "could not decide" in await house.shell("echo fine")
        for _ in range(3):
            async with connected(made, token) as far, asyncio.TaskGroup() as group:
                answer = await far.register(hooks=[{"point": "tool.before"}])
                assert answer["result"]["service"] == "afar"
                serving = group.create_task(far.serve())
                await house.until("afar", lambda one: one.state == "running")
                assert "from afar" in await house.shell("echo bad")
                assert "fine" in await house.shell("echo fine")
                serving.cancel()
            await house.until("afar", lambda one: one.state == "waiting")
            assert "could not decide" in await house.shell("echo fine")


async def test_a_connection_anew_takes_the_place_of_one_that_hangs(tmp_path: Path, server: ScriptedServer) -> None:
    async with there(tmp_path / "h", server) as (made, house):
        token = await made.add_token("far", "service:afar")
        await house.grant("afar")
        async with connected(made, token) as first:
            await first.register(hooks=[{"point": "tool.before"}])
            async with connected(made, token) as second, asyncio.TaskGroup() as group:
                await second.register(hooks=[{"point": "tool.before"}])
                serving = group.create_task(second.serve())
                await house.until("afar", lambda one: one.state == "running" and one.generation > 1)
                assert "from afar" in await house.shell("echo bad")
                assert (await made.system.kernel.call(OWNER, ServiceRevoke(service="afar"))).state == "ungranted"
                async with asyncio.timeout(10):
                    await serving  # it was told to go
        assert "bad" in await house.shell("echo bad")


@pytest.mark.parametrize(("scopes", "name"), [(("service:other",), "afar"), (("service:afar",), "guard")])
async def test_a_token_is_for_one_service(
    tmp_path: Path, server: ScriptedServer, scopes: tuple[str, ...], name: str
) -> None:
    async with there(tmp_path / "h", server) as (made, house):
        token = await made.add_token("far", *scopes)
        await house.grant("afar")
        async with connected(made, token, name) as far:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await far.register()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
        assert (await house.info("afar")).state == "waiting"


async def test_who_may_not_connect_does_not_come_that_far(tmp_path: Path, server: ScriptedServer) -> None:
    async with there(tmp_path / "h", server) as (made, house):
        await house.call(ServiceGrant(service="afar"))
        for token, status in (("nonsense", 401), (await made.add_token("reader", "read"), 403)):
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with connected(made, token):
                    raise AssertionError("it was let in")
            assert refused.value.response.status_code == status
        with pytest.raises(websockets.InvalidStatus) as refused:
            origin = {"Authorization": f"Bearer {made.token}", "Origin": "https://evil.example"}
            async with connect(f"{made.ws}/ws/services/afar", additional_headers=origin):
                raise AssertionError("it was let in")
        assert refused.value.response.status_code == 403


async def test_what_is_no_message_ends_it(tmp_path: Path, server: ScriptedServer) -> None:
    async with there(tmp_path / "h", server) as (made, house):
        token = await made.add_token("far", "service:afar")
        await house.grant("afar")
        for text in ("nonsense", "[]", '{"jsonrpc":"2.0","id":1,"method":"session.list"}'):
            async with connected(made, token) as far:
                await far._socket.send(text)
                with pytest.raises(websockets.ConnectionClosed):
                    while True:
                        await far._socket.recv()
        assert (await house.info("afar")).state == "waiting"
