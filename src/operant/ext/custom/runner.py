"""Run inside a process of its own: tell which tools a file has, or use one of them.

`python -m operant.ext.custom.runner SEAL MODE FILE DIGEST [NAME ARGUMENTS CALL]`. What the file prints is live
output; the result is the last line, behind SEAL, a word that no output has by accident.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec

from operant.ext.custom.seedling import SeedTool, offer_seed_names
from operant.sdk import Agent, CallContext, FunctionTool, Invalid, Json, OperantError, Text, Tool, ToolResult, failed


class Called(msgspec.Struct):
    """What the tool is told of the call."""

    call_id: str
    session: str
    turn: str
    agent: str
    workspace: str
    key: str
    repeated: bool


def main(seal: str, mode: str, path: str, digest: str, *rest: str) -> None:
    """Answer on standard output."""
    tools = tools_of(path, digest)
    if mode == "describe":
        answer = msgspec.json.encode([tool.spec for tool in tools.values()])
    else:
        name, arguments, called = rest
        given: Json = msgspec.json.decode(arguments)
        call = msgspec.json.decode(called, type=Called)
        answer = msgspec.json.encode(asyncio.run(used(tools[name], given, call)))
    sys.stdout.flush()
    sys.stderr.flush()
    print(f"\n{seal}{answer.decode()}")  # noqa: T201 - standard output is the wire


def tools_of(path: str, digest: str) -> dict[str, Tool]:
    """Run a file that has this digest and return its tools by name."""
    source = Path(path).read_bytes()
    if hashlib.sha256(source).hexdigest() != digest:
        raise SystemExit("the file has changed since it was looked at")
    offer_seed_names()
    module = ModuleType("custom_tool")
    module.__file__ = path
    sys.modules["custom_tool"] = module  # annotations are resolved by the module's name
    exec(compile(source, path, "exec"), vars(module))  # noqa: S102 - exactly the bytes that were allowed
    found = [value for value in vars(module).values() if isinstance(value, FunctionTool | SeedTool)]
    return {tool.spec.name: cast(Tool, tool) for tool in found}


async def used(tool: Tool, arguments: Json, called: Called) -> ToolResult:
    """Use a tool; what its author raises is a failure that the model reads."""
    agent = Agent(name=called.agent, workspace=called.workspace)
    call = CallContext(
        call_id=called.call_id,
        session=called.session,
        turn=called.turn,
        agent=agent,
        key=called.key,
        repeated=called.repeated,
    )
    try:
        result: Any = tool.run(call, tool.check(arguments), _show)
        if inspect.isawaitable(result):
            result = await result
    except Invalid as error:
        return failed(error.line())
    except OperantError as error:
        return failed(error.line())
    return result if isinstance(result, ToolResult) else ToolResult(parts=(Text(text=str(result)),))


def _show(text: str) -> None:
    print(text, end="", flush=True)  # noqa: T201 - live output


if __name__ == "__main__":
    main(*sys.argv[1:])
