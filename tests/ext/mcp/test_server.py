"""This agent as a server: the official SDK's client comes in through the gateway, and over stdio."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from operant.kit.frontmatter import read_matter
from tests.cli.process import Operant
from tests.ext.mcp.house import House, furnished, peer

MODES = ("auto", "legacy")


@asynccontextmanager
async def visiting(house: House, token: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    """Connect the SDK's client to `/mcp`."""
    headers = {"Authorization": f"Bearer {token or house.system.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
        transport = streamable_http_client(f"{house.system.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
async def test_another_program_talks_with_the_agent(tmp_path: Path, mode: str) -> None:
    async with furnished(tmp_path, {}) as house, visiting(house, mode=mode) as client:
        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"ask", "sessions", "history"}
        said = await client.call_tool("ask", {"message": "@hello"})
        assert not said.is_error and said.structured_content is not None
        session = said.structured_content["session"]
        assert said.structured_content["answer"] and said.structured_content["state"] == "done"
        again = await client.call_tool("ask", {"message": "@hello", "session": session, "key": "k"})
        twice = await client.call_tool("ask", {"message": "@hello", "session": session, "key": "k"})
        assert again.structured_content == twice.structured_content
        told = (await client.call_tool("history", {"session": session})).structured_content
        assert told is not None and [one["role"] for one in told["messages"]] == ["user", "agent", "user", "agent"]
        listed = (await client.call_tool("sessions", {})).structured_content
        assert listed is not None and session in {one["session"] for one in listed["sessions"]}


async def test_a_question_to_the_owner_does_not_hold_up_the_caller(tmp_path: Path) -> None:
    async with furnished(tmp_path, {"peer": peer(tmp_path)}) as house, visiting(house) as client:
        house.plan(tools={"echo": "Say it again."})
        await house.test()
        said = (await client.call_tool("ask", {"message": "@echo"})).structured_content
        assert said is not None and said["state"] == "waiting" and "mcp__peer__echo" in said["question"]


async def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    async with furnished(tmp_path, {}) as house, visiting(house) as client:
        for arguments in ({}, {"message": ""}, {"message": "x", "more": 1}, {"message": "x", "agent": "nobody"}):
            assert (await client.call_tool("ask", arguments)).is_error
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("shell", {"command": "id"})
        assert unknown.value.code == types.INVALID_PARAMS


async def test_a_token_does_what_its_scopes_allow(tmp_path: Path) -> None:
    async with furnished(tmp_path, {}) as house:
        reader = await house.system.add_token("reader", "read")
        async with visiting(house, reader) as client:
            assert (await client.call_tool("ask", {"message": "@hello"})).is_error
            assert not (await client.call_tool("sessions", {})).is_error
        approver = await house.system.add_token("approver", "approve")
        for token, status in ((approver, 403), ("wrong", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers) as http:
                assert (await http.post(f"{house.system.url}/mcp", json={})).status_code == status
                assert (await http.post(f"{house.system.url}/mcp", json={})).status_code == status


async def test_the_owner_chooses_which_tools_others_use(tmp_path: Path) -> None:
    chosen = {"tools": ["list_files", "read_*"]}
    async with furnished(tmp_path, {}, serve=chosen) as house, visiting(house) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"list_files", "read_file"} <= names and "shell" not in names
        assert not (await client.call_tool("list_files", {})).is_error
        talker = await house.system.add_token("talker", "chat")
        async with visiting(house, talker) as stranger:
            assert (await stranger.call_tool("list_files", {})).is_error  # this token runs no tools


class _Params(types.RequestParams):
    uri: str


async def test_skills_are_shared_with_a_digest_a_file(tmp_path: Path) -> None:
    """SEP-2640."""
    folder = tmp_path / "home" / "skills" / "tea"
    (folder / "notes").mkdir(parents=True)
    manifest = "---\nname: tea\ndescription: Make tea.\nmetadata:\n  cups: '2'\n---\nBoil water.\n"
    (folder / "SKILL.md").write_text(manifest)
    (folder / "notes" / "cup.bin").write_bytes(b"\xff\x00")
    (folder / ".env").write_text("CANARY")
    (tmp_path / "secret").write_text("CANARY")
    (folder / "link").symlink_to(tmp_path / "secret")
    async with furnished(tmp_path, {}) as house, visiting(house) as client:
        extensions = client.server_capabilities.extensions or {}
        assert "io.modelcontextprotocol/skills" in extensions
        entries = {one["frontmatter"]["name"]: one for one in (await asked(client, "skills/list"))["skills"]}
        assert "tea" not in entries  # one of its files leads out of it
        (folder / "link").unlink()
        entries = {one["frontmatter"]["name"]: one for one in (await asked(client, "skills/list"))["skills"]}
        tea = entries["tea"]
        assert tea["frontmatter"] == read_matter(manifest).settings.data
        assert [one["uri"] for one in tea["resources"]] == ["skill://tea/SKILL.md", "skill://tea/notes/cup.bin"]
        for one in tea["resources"]:
            read = (await client.read_resource(one["uri"])).contents[0]
            data = read.text.encode() if isinstance(read, types.TextResourceContents) else b"\xff\x00"
            assert one["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}" and one["size"] == len(data)
        assert (await asked(client, "skills/get", uri=tea["uri"]))["skill"] == tea
        listed = (await asked(client, "resources/directory/read", uri="skill://tea"))["resources"]
        assert [one["name"] for one in listed] == ["SKILL.md", "notes"]
        for uri in ("skill://tea/.env", "skill://tea/../../secret", "skill://none/SKILL.md", "file:///etc/passwd"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.code == types.INVALID_PARAMS


async def asked(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Send a request that the SDK has no method for."""
    result, _ = await raw(client, method, params)
    return result


async def raw(client: Client, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], None]:
    session: Any = client.session
    data: dict[str, Any] = {"method": method, "params": params}
    options: dict[str, Any] = {}
    session._stamp(data, options)
    return await session._dispatcher.send_raw_request(data["method"], data["params"], options), None


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_over_stdio_a_program_starts_us(operant: Operant, mode: str) -> None:
    operant("init")
    start = StdioServerParameters(command=sys.executable, args=["-m", "operant", "mcp", "serve"], env=operant.env)
    async with Client(start, mode=mode) as client:
        said = await client.call_tool("ask", {"message": "hello"})
        assert not said.is_error
        assert said.structured_content is not None and said.structured_content["answer"]
