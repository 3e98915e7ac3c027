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

from operant.kernel.errors import OperantError
from tests.ext.mcp.house import House, furnished


def settings(url: str) -> dict[str, Any]:
    """Return the server's settings, with the credentials that the scenario hands out."""
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    made: dict[str, Any] = {"url": url}
    if "client_secret" in given:
        made["oauth"] = {key: given[key] for key in ("client_id", "client_secret")}
    return made


def _filled(schema: dict[str, Any]) -> dict[str, Any]:
    """Return something for every argument that must be there."""
    some = {"integer": 1, "number": 1.5, "boolean": True, "object": {}, "array": []}
    properties = schema.get("properties", {})
    return {name: some.get(properties.get(name, {}).get("type"), "x") for name in schema.get("required", ())}


async def use(house: House) -> None:
    """Connect, and call every tool that is offered."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    wanted = {one["name"]: one.get("arguments", {}) for one in context.get("toolCalls", ())}
    found = await house.test("suite")
    specs = await house.tools()
    for tool in found.tools:
        if tool.state == "offered":
            arguments = wanted.get(tool.tool) or _filled(specs[tool.name].schema)
            if tool.tool == "json_schema_echo":
                arguments = {"schema": specs["mcp__suite__json_schema_2020_12_tool"].schema}
            sys.stderr.write(f"{tool.tool} {arguments}: {await house.said(tool.name, **arguments)}\n")


async def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with furnished(Path(folder), {"suite": settings(sys.argv[1])}) as house:
            try:
                await use(house)
            except OperantError as error:
                sys.stderr.write(f"{error.line()}\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
