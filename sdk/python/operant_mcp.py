"""Let an MCP server be the service of a skill: its tools become tools.

    metadata:
      operant.service: "mcp: npx -y some-mcp-server@1.2.3"

Operant runs `python -m operant_mcp SKILL COMMAND …` for it. The server is a child of this process, in the same sandbox;
its tools are registered as SKILL__TOOL. Needs the package `mcp`.
"""

import asyncio
import hashlib
import logging
import os
import re
import sys
import threading

import operant_sdk

MOST_TOOLS = 64
MOST_WORDS = 1_000
LONGEST_NAME = 64
CALL_S = 300.0
CLOSED = -32000
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")
_PRIVATE = ("OPERANT_SERVICE_TOKEN", "OPERANT_SERVICE_SOCKET")


def name_of(skill, tool):
    """Return the name of a tool, with a digest where its own would not do."""
    clean = _FOREIGN.sub("_", tool).strip("_") or "tool"
    name = f"{skill}__{clean}"
    if clean == tool and len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.sha256(tool.encode(errors="replace")).hexdigest()[:6]
    return f"{name[: LONGEST_NAME - len(mark) - 1]}_{mark}"


def text_of(content):
    """Return what a server answered as text; of what is none, what it was."""
    return "\n".join(
        part.text if part.type == "text" else f"[{part.type}, which a service cannot pass on]" for part in content
    )


async def listed(client):
    """Return the server's tools, as many as a service may have."""
    found, cursor = {}, None
    while len(found) < MOST_TOOLS:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            found.setdefault(tool.name, tool)
        cursor = page.next_cursor
        if cursor is None:
            break
    return list(found.values())[:MOST_TOOLS]


def offered(skill, client, tools, loop):
    """Return tools in the shape of the SDK; each call goes to the loop that the connection lives in."""
    from mcp import MCPError

    def make(tool):
        async def ask(arguments):
            return await client.call_tool(tool.name, arguments, CALL_S)

        def handler(arguments, call):
            try:
                said = asyncio.run_coroutine_threadsafe(ask(arguments), loop).result()
            except MCPError as error:
                if error.code == CLOSED:  # Operant starts both of us again
                    complain("the MCP server hung up")
                    os._exit(1)
                return {"text": str(error), "outcome": "error"}
            return {"text": text_of(said.content), "outcome": "error" if said.is_error else "ok"}

        words = " ".join((tool.description or "").split())[:MOST_WORDS]
        schema = {"type": "object", "properties": {}, **(tool.input_schema or {})}
        return operant_sdk.tool(handler, f"[from an MCP server] {words}".rstrip(), schema, timeout_s=CALL_S + 10)

    return {name_of(skill, tool.name): make(tool) for tool in tools}


async def serve(skill, command):
    """Connect to the server, and be a service until Operant says to end."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    env = {name: value for name, value in os.environ.items() if name not in _PRIVATE}
    child = StdioServerParameters(command=command[0], args=command[1:], env=env)

    async def changed(message):
        if type(message).__name__ == "ToolListChangedNotification":
            complain(f"its tools changed; `operant skill reload {skill}` offers them as they are now")

    async with Client(stdio_client(child), message_handler=changed) as client:
        tools = offered(skill, client, await listed(client), asyncio.get_running_loop())
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def run():
            try:
                operant_sdk.run(lambda: {"tools": tools})
            finally:
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=run).start()
        await ended.wait()


def main():
    """Run."""
    skill, command = sys.argv[1], sys.argv[2:]
    try:
        from mcp import MCPError
    except ImportError:
        complain("an MCP server as a service needs a package: pip install 'operant[mcp]'")
        sys.exit(operant_sdk.WRONG_CONFIGURATION)
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    try:
        asyncio.run(serve(skill, command))
    except* OSError as group:
        complain(f"{command[0]} cannot be started: {group.exceptions[0]}")
        sys.exit(operant_sdk.WRONG_CONFIGURATION)
    except* MCPError as group:
        complain(f"{command[0]} does not answer as an MCP server: {group.exceptions[0]}")
        sys.exit(1)


def complain(sentence):
    """Put a line into the log of the service."""
    sys.stderr.write(f"{sentence}\n")


if __name__ == "__main__":
    main()
