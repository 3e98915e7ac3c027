"""Servers over HTTP, through our own client and its egress; and what servers have beside tools."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from operant.kernel.errors import Unavailable
from operant.kernel.syscalls import ToolList
from tests.ext.mcp.house import furnished, peer, serving_http


async def test_a_server_over_http_gets_the_headers_of_its_settings(tmp_path: Path) -> None:
    plan = {"tools": {"echo": "Say it again."}, "headers": {"authorization": "Bearer CANARY"}}
    (tmp_path / "peer.json").write_text(json.dumps(plan))
    async with serving_http(tmp_path) as url:
        servers = {"peer": {"url": url, "headers": {"Authorization": "Bearer CANARY"}}, "poor": {"url": url}}
        async with furnished(tmp_path, servers) as house:
            found = await house.test()
            assert (found.kind, found.protocol) == ("http", "2026-07-28")
            assert "echo: hello" in await house.said("mcp__peer__echo", text="hello")
            with pytest.raises(Unavailable):
                await house.test("poor")
            assert "CANARY" not in "".join(path.read_text() for path in (tmp_path / "home" / "logs").iterdir())


async def test_a_server_that_was_away_is_found_again(tmp_path: Path) -> None:
    (tmp_path / "peer.json").write_text(json.dumps({"tools": {"echo": "Say it again."}}))
    async with AsyncExitStack() as first:
        url = await first.enter_async_context(serving_http(tmp_path))
        async with furnished(tmp_path, {"peer": {"url": url}}) as house:
            await house.test()
            await first.aclose()
            assert (await house.use("mcp__peer__echo", text="x")).outcome == "error"
            async with serving_http(tmp_path, at=url.split(":")[2].partition("/")[0]):
                assert "echo: again" in await house.said("mcp__peer__echo", text="again")


async def test_where_nobody_may_go_no_server_is_dialled(tmp_path: Path) -> None:
    async with furnished(tmp_path, {"peer": {"url": "http://169.254.169.254/mcp"}}) as house:
        with pytest.raises(Unavailable):
            await house.test()


async def test_resources_and_prompts_are_found_and_read(tmp_path: Path) -> None:
    async with furnished(tmp_path, {"peer": peer(tmp_path), "bare": peer(tmp_path, "bare")}) as house:
        house.plan()
        house.plan("bare", tools={"echo": "Say it again."})
        await house.test()
        await house.test("bare")
        assert "mcp_find" not in await house.tools()
        house.plan(things=True)
        found = await house.test()
        assert (found.resources, found.prompts) == (1, 1)
        specs = {spec.name: spec for spec in await house.call(ToolList(agent="operant"))}
        assert specs["mcp_find"].deferred and specs["mcp_read"].deferred
        shown = await house.said("mcp_find")
        assert "peer resource note://one one: A note." in shown and "peer prompt greet(who!) Say hello." in shown
        assert "greet" not in await house.said("mcp_find", query="a note")
        read = await house.use("mcp_read", server="peer", name="note://one")
        assert read.labels == ("outside",)
        assert "of note://one" in await house.said("mcp_read", server="peer", name="note://one")
        assert "Say hello to you." in await house.said(
            "mcp_read", server="peer", name="greet", arguments={"who": "you"}
        )
        assert (await house.use("mcp_read", server="bare", name="x")).outcome == "error"
