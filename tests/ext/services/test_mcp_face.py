"""An MCP server as the service of a skill, made with the official SDK."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from operant.kernel.syscalls import SkillReload, ToolList
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import house, write_skill

SERVER = """
import json, os
from mcp.server.mcpserver import MCPServer
from mcp.types import ImageContent, TextContent

server = MCPServer("notes")

@server.tool()
def say(text: str) -> str:
    "Say it again."
    return text + "!"

@server.tool(name="read.file")
def read_file() -> str:
    "Tell what can be seen from here."
    return json.dumps(dict(os.environ))

@server.tool()
def fail() -> str:
    "Fail."
    raise ValueError("it is broken")

@server.tool()
def picture() -> list:
    "Show."
    return [TextContent(text="look:"), ImageContent(data="iVBORw0KGgo=", mime_type="image/png")]

@server.tool()
def die() -> str:
    "End."
    os._exit(1)

server.run()
"""


async def test_the_tools_of_an_mcp_server_are_tools_of_its_skill(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "notes", {"server.py": SERVER}, service=f"mcp: {sys.executable} server.py")
    async with house(home, server) as there:
        info = await there.grant("notes")
        assert info.state == "running", await there.log("notes")
        assert {"notes__say", "notes__fail", "notes__picture", "notes__die"} < set(info.tools)
        assert await there.tool("notes__say", text="zażółć\n🦊") == "zażółć\n🦊!"
        assert "Error executing tool fail" in await there.tool("notes__fail")
        assert await there.tool("notes__picture") == "look:\n[image, which a service cannot pass on]"
        odd = next(name for name in info.tools if name.startswith("notes__read_file_"))
        assert "OPERANT_SERVICE_TOKEN" not in await there.tool(odd)
        specs = {spec.name: spec for spec in await there.call(ToolList(agent="operant"))}
        assert specs["notes__say"].effect == "external" and "text" in specs["notes__say"].schema["properties"]
        before = (await there.info("notes")).generation
        await there.tool("notes__die")
        await there.newer("notes", before)
        await there.until("notes", lambda one: one.state == "running")
        assert await there.tool("notes__say", text="back") == "back!"


async def test_a_server_that_is_not_there_is_said_once(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "h"
    write_skill(home, "notes", {}, service="mcp: no-such-program here")
    async with house(home, server) as there:
        await there.grant("notes")
        info = await there.until("notes", lambda one: one.state == "failed")
        assert "no-such-program cannot be started" in await there.log("notes"), info
        write_skill(home, "notes", {}, service="mcp: echo hello")
        await there.call(SkillReload())
        await there.grant("notes")
        async with asyncio.timeout(20):
            while "echo does not answer as an MCP server" not in await there.log("notes"):
                await asyncio.sleep(0)
        assert "Traceback" not in await there.log("notes")
        write_skill(home, "notes", {}, service="mcp:")
        await there.call(SkillReload())
        assert "names no command" in (await there.info("notes")).reason
