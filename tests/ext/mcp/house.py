"""A running system with servers that are made with the official SDK."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from operant.kernel.records import OWNER, ToolResult, ToolSpec, text_of
from operant.kernel.syscalls import McpApprove, McpCallback, McpLogin, McpServer, McpTest, ToolInvoke, ToolList
from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import Served, served

SCRIPT: dict[str, Any] = {
    "hello": [{"text": "Hello back."}],
    "echo": [{"calls": [{"name": "mcp__peer__echo", "arguments": {"text": "mine"}}]}, {"text": "Done."}],
}
ROOT = Path(__file__).parents[3]


class House:
    """A served system, and files that say what each server has."""

    def __init__(self, system: Served, folder: Path) -> None:
        self.system = system
        self.folder = folder

    async def call(self, request: Any) -> Any:
        return await self.system.system.kernel.call(OWNER, request)

    async def test(self, server: str = "peer") -> McpServer:
        return await self.call(McpTest(server=server))

    async def approve(self, server: str = "peer", tool: str = "") -> tuple[str, ...]:
        return await self.call(McpApprove(server=server, tool=tool))

    async def login(self, server: str = "peer", redirect: str = "http://127.0.0.1:1/callback") -> McpServer:
        """Log in as a person's browser would."""
        address = await self.call(McpLogin(server=server, redirect=redirect))
        if not address:
            return await self.test(server)
        return await self.call(McpCallback(server=server, address=await sent_back(address)))

    async def tools(self, agent: str = "operant") -> dict[str, ToolSpec]:
        return {spec.name: spec for spec in await self.call(ToolList(agent=agent)) if spec.name.startswith("mcp")}

    async def use(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.call(ToolInvoke(name=name, arguments=arguments, agent="operant"))

    async def said(self, name: str, /, **arguments: Any) -> str:
        return text_of((await self.use(name, **arguments)).parts)

    def plan(self, server: str = "peer", **plan: Any) -> None:
        (self.folder / f"{server}.json").write_text(json.dumps(plan))


def peer(folder: Path, name: str = "peer", **more: Any) -> dict[str, Any]:
    """Return the settings of a server over stdio."""
    env = {"PEER": str(folder / f"{name}.json"), **more.pop("env", {})}
    return {"command": sys.executable, "args": ["-m", "tests.ext.mcp.peer"], "cwd": str(ROOT), "env": env, **more}


@asynccontextmanager
async def furnished(
    folder: Path,
    servers: dict[str, Any],
    *,
    file: dict[str, Any] | None = None,
    gateway: dict[str, Any] | None = None,
    approval: dict[str, str] | None = None,
    **more: Any,
) -> AsyncIterator[House]:
    """Run a system with servers in `operant.yaml`, and others in `mcp.json`."""
    home = folder / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    if file is not None:
        (home / "mcp.json").write_text(json.dumps({"mcpServers": file}))
    server = ScriptedServer(SCRIPT)
    config: dict[str, Any] = {"mcp": {"servers": servers, **more}, "gateway": gateway or {}}
    config["defaults"] = {"approval": approval or {}}
    async with server.serving(), served(home, server, config) as system:
        yield House(system, folder)


@asynccontextmanager
async def serving_http(folder: Path, name: str = "peer", at: str = "0") -> AsyncIterator[str]:
    """Run a server over HTTP, and yield its address."""
    told = folder / f"{name}.port"
    env = {**os.environ, "PEER": str(folder / f"{name}.json"), "PORT": str(told), "AT": at}
    program = (sys.executable, "-m", "tests.ext.mcp.peer", "--http")
    running = await asyncio.create_subprocess_exec(*program, cwd=ROOT, env=env, stderr=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(20):
            while not (told.exists() and told.read_text()):
                await asyncio.sleep(0)
        yield f"http://127.0.0.1:{told.read_text()}/mcp"
    finally:
        running.terminate()
        await running.wait()
        told.unlink(missing_ok=True)


async def sent_back(address: str) -> str:
    """Return where an authorization server sends a browser, which it knows already."""
    async with aiohttp.ClientSession() as browser, browser.get(address, allow_redirects=False) as answer:
        return answer.headers["Location"]


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777
