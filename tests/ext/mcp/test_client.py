"""Servers of others as tools: real ones, made with the official SDK, over stdio."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from operant.kernel.errors import Invalid, NotFound, Unavailable
from operant.kernel.records import ToolEnded, text_of
from operant.kernel.syscalls import McpAdd, McpList, McpRemove, SessionHistory
from tests.ext.mcp.house import furnished, mode_of, peer

TOOLS = {"echo": "Say it again.", "fail": "Fail.", "picture": "Show one."}


async def test_tools_of_a_server_are_tools_of_the_agent(tmp_path: Path) -> None:
    async with furnished(tmp_path, {"peer": peer(tmp_path)}) as house:
        house.plan(tools=TOOLS)
        found = await house.test()
        assert (found.state, found.kind, found.source) == ("connected", "stdio", "operant.yaml")
        assert found.version == "peer 7" and found.protocol
        specs = await house.tools()
        assert set(specs) == {"mcp__peer__echo", "mcp__peer__fail", "mcp__peer__picture"}
        echo = specs["mcp__peer__echo"]
        assert echo.description == "[from the MCP server peer] Say it again."
        assert echo.effect == "external" and not echo.deferred
        result = await house.use("mcp__peer__echo", text="hello")
        assert result.outcome == "ok" and "outside" in result.labels
        assert "echo: hello" in await house.said("mcp__peer__echo", text="hello")
        assert (await house.use("mcp__peer__fail", text="")).outcome == "error"
        assert "needs text" in await house.said("mcp__peer__echo")
        picture = await house.use("mcp__peer__picture", text="")
        assert any(getattr(part, "media_type", "") == "image/png" for part in picture.parts)


async def test_mcp_json_is_read_as_other_programs_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = peer(tmp_path, env={"OTHER": "${NOT_SET:-fallback}"}, type="stdio", autoApprove=["echo"], icon="x")
    broken = {"command": "x", "env": {"KEY": "${NOT_SET}"}}
    async with furnished(tmp_path, {}, file={"peer": entry, "broken": broken, "both": {}}) as house:
        house.plan(tools={"environment": "Tell."})
        assert (await house.test()).source == "mcp.json"
        told = await house.said("mcp__peer__environment", text="")
        assert '"OTHER": "fallback"' in told
        listed = {one.name: one for one in await house.call(McpList())}
        with pytest.raises(Unavailable, match="NOT_SET is not set"):
            await house.test("broken")
        with pytest.raises(Unavailable, match="either a command or a url"):
            await house.test("both")
        assert set(listed) == {"peer", "broken", "both"}


async def test_servers_are_added_and_removed_while_it_runs(tmp_path: Path) -> None:
    async with furnished(tmp_path, {"own": peer(tmp_path, "own")}) as house:
        house.plan(tools=TOOLS)
        house.plan("own", tools={})
        await house.call(McpAdd(server="peer", settings=peer(tmp_path)))
        await house.test()
        assert "mcp__peer__echo" in await house.tools()
        file = tmp_path / "home" / "mcp.json"
        assert mode_of(file) == 0o600 and json.loads(file.read_text())["mcpServers"]["peer"]["command"]
        await house.call(McpRemove(server="peer"))
        assert await house.tools() == {}
        with pytest.raises(NotFound):
            await house.call(McpRemove(server="own"))
        for name, settings in (
            ("a__b", peer(tmp_path)),
            ("x", {"command": "a", "url": "http://b"}),
            ("y", {"args": 3}),
        ):
            with pytest.raises(Invalid):
                await house.call(McpAdd(server=name, settings=settings))


async def test_a_broken_server_hurts_nobody_else(tmp_path: Path) -> None:
    servers = {"peer": peer(tmp_path), "ill": peer(tmp_path, "ill"), "none": {"command": "/no/such/program"}}
    async with furnished(tmp_path, servers) as house:
        house.plan(tools=TOOLS)
        house.plan("ill", broken=True)
        await house.test()
        with pytest.raises(Unavailable, match="It said: it cannot start"):
            await house.test("ill")
        with pytest.raises(Unavailable):
            await house.test("none")
        assert "echo: x" in await house.said("mcp__peer__echo", text="x")


async def test_a_server_that_dies_comes_back(tmp_path: Path) -> None:
    async with furnished(tmp_path, {"peer": peer(tmp_path)}) as house:
        house.plan(tools={"die": "End.", "echo": "Say."})
        await house.test()
        assert (await house.use("mcp__peer__die", text="")).outcome == "error"
        assert "echo: again" in await house.said("mcp__peer__echo", text="again")


async def test_the_owner_says_who_may_use_what(tmp_path: Path) -> None:
    servers = {
        "peer": peer(tmp_path, deny=["fail"], tools=["e*", "fail"], trusted=True),
        "other": peer(tmp_path, agents=["someone"]),
        "off": peer(tmp_path, disabled=True),
    }
    async with furnished(tmp_path, servers) as house:
        house.plan(tools=TOOLS, hints=True)
        found = await house.test()
        await house.test("other")
        assert {one.tool: one.state for one in found.tools} == {
            "echo": "offered",
            "fail": "refused",
            "picture": "refused",
        }
        specs = await house.tools()
        assert set(specs) == {"mcp__peer__echo"}
        assert specs["mcp__peer__echo"].effect == "read"  # the owner trusts its hints
        with pytest.raises(Unavailable, match="disabled"):
            await house.test("off")


async def test_a_model_uses_a_tool_of_a_server(tmp_path: Path) -> None:
    """The first message finds the tools, though nobody had connected before; what comes back is marked as foreign."""
    servers = {"peer": peer(tmp_path)}
    (tmp_path / "peer.json").write_text(json.dumps({"tools": TOOLS}))
    async with furnished(tmp_path, servers, approval={"mcp__peer__*": "allow"}) as house:
        answer = await house.system.post("/api/chat/s", {"message": "@echo"})
        assert answer["response"] == "Done."
        ended = [one.body for one in await house.call(SessionHistory(session="s")) if isinstance(one.body, ToolEnded)]
        assert "outside" in ended[0].labels and "<outside" in text_of(ended[0].parts)
        assert "echo: mine" in text_of(ended[0].parts)


async def test_many_tools_are_searched_and_not_listed(tmp_path: Path) -> None:
    async with furnished(tmp_path, {"peer": peer(tmp_path)}, listed=2) as house:
        house.plan(tools=TOOLS)
        await house.test()
        assert all(spec.deferred for spec in (await house.tools()).values())
        found = await house.said("tool_search", query="say it again")
        assert "mcp__peer__echo" in found
