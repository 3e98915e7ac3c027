"""The client that the conformance suite starts: a whole system that knows one server, whose tools are used.

Arguments: the address of the suite's server. What to do is the scenario's, in `MCP_CONFORMANCE_SCENARIO`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from operant.kernel.errors import OperantError, Unavailable
from operant.kernel.syscalls import McpServer
from tests.ext.mcp.house import House, furnished


async def settings(url: str) -> dict[str, Any]:
    """Return the server's settings, with the credentials that the scenario hands out."""
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    made: dict[str, Any] = {"url": url}
    if "client_secret" in given:
        by_person = os.environ["MCP_CONFORMANCE_SCENARIO"] == "auth/pre-registration"
        made["oauth"] = {key: given[key] for key in ("client_id", "client_secret")}
        made["oauth"]["issuer"] = await _issuer(url)
        made["oauth"]["grant"] = "authorization_code" if by_person else "client_credentials"
    return made


async def _issuer(url: str) -> str:
    """Return what the owner was told together with the credentials, and the suite says nowhere else."""
    place = urlsplit(url)
    known = f"{place.scheme}://{place.netloc}/.well-known/oauth-protected-resource{place.path}"
    async with aiohttp.ClientSession() as http, http.get(known) as answer:
        return (await answer.json())["authorization_servers"][0]


def _filled(schema: dict[str, Any]) -> dict[str, Any]:
    """Return something for every argument that must be there."""
    some = {"integer": 1, "number": 1.5, "boolean": True, "object": {}, "array": []}
    properties = schema.get("properties", {})
    return {name: some.get(properties.get(name, {}).get("type"), "x") for name in schema.get("required", ())}


async def use(house: House) -> None:
    """Connect, and call every tool that is offered."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    wanted = {one["name"]: one.get("arguments", {}) for one in context.get("toolCalls", ())}
    found = await _connected(house)
    specs = await house.tools()
    for tool in found.tools:
        if tool.state == "offered":
            arguments = wanted.get(tool.tool) or _filled(specs[tool.name].schema)
            if tool.tool == "json_schema_echo":
                arguments = {"schema": specs["mcp__suite__json_schema_2020_12_tool"].schema}
            said = await house.said(tool.name, **arguments)
            if "operant mcp login" in said:
                await _logged_in(house)
                said = await house.said(tool.name, **arguments)
            sys.stderr.write(f"{tool.tool} {arguments}: {said}\n")


async def _connected(house: House) -> McpServer:
    try:
        return await house.test("suite")
    except Unavailable as error:
        sys.stderr.write(f"{error.line()}\n")
        return await _logged_in(house)


async def _logged_in(house: House) -> McpServer:
    try:
        return await house.login("suite")
    except Unavailable as error:
        if "on top" not in error.line():
            raise
        return await house.login("suite")


async def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with furnished(Path(folder), {"suite": await settings(sys.argv[1])}) as house:
            try:
                await use(house)
            except OperantError as error:
                sys.stderr.write(f"{error.line()}\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
