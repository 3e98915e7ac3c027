"""Ask a server what it has, page by page, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from operant.ext.mcp.seen import MOST_TOOLS, Seen, harmless, see
from operant.ext.mcp.settings import ServerSettings
from operant.kit.text import plain
from operant.sdk import Record

if TYPE_CHECKING:
    from mcp import Client

MOST_PAGES = 100
MOST_THINGS = 1_000
"""Resources and prompts of one server that are known; more are left out."""


class Thing(Record):
    """A resource (`uri`) or a prompt (`arguments`, of which the required ones end in `!`) of a server."""

    name: str
    description: str = ""
    uri: str = ""
    arguments: tuple[str, ...] = ()


class Listing(Record):
    """All that a server has, as a stranger says it; `left_out` counts the tools that were too many."""

    tools: tuple[Seen, ...] = ()
    left_out: int = 0
    resources: tuple[Thing, ...] = ()
    prompts: tuple[Thing, ...] = ()


async def look(client: Client, settings: ServerSettings) -> Listing:
    """Return all that a server has."""
    can = client.server_capabilities
    tools, left_out = await _tools(client, settings) if can.tools is not None else ((), 0)
    return Listing(
        tools=tools,
        left_out=left_out,
        resources=await _resources(client) if can.resources is not None else (),
        prompts=await _prompts(client) if can.prompts is not None else (),
    )


async def _tools(client: Client, settings: ServerSettings) -> tuple[tuple[Seen, ...], int]:
    found: dict[str, Seen] = {}
    cursor: str | None = None
    left_out = 0
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            if len(found) >= MOST_TOOLS:
                left_out += 1
            elif tool.name not in found:  # the first of a name counts
                seen = see(tool.model_dump(mode="json", by_alias=True, exclude_none=True), settings)
                found[tool.name] = seen
        cursor = page.next_cursor
        if cursor is None or left_out:
            break
    return tuple(sorted(found.values(), key=lambda one: one.tool)), left_out


async def _resources(client: Client) -> tuple[Thing, ...]:
    found: list[Thing] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_resources(cursor=cursor)
        found += [_resource(one) for one in page.resources]
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST_THINGS:
            break
    return tuple(found[:MOST_THINGS])


def _resource(one: Any) -> Thing:
    return Thing(name=plain(one.name)[:200], description=harmless(one.description or ""), uri=plain(str(one.uri))[:500])


async def _prompts(client: Client) -> tuple[Thing, ...]:
    found: list[Thing] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_prompts(cursor=cursor)
        found += [_prompt(one) for one in page.prompts]
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST_THINGS:
            break
    return tuple(found[:MOST_THINGS])


def _prompt(one: Any) -> Thing:
    arguments = tuple(f"{plain(arg.name)[:100]}{'!' if arg.required else ''}" for arg in one.arguments or ())
    return Thing(name=plain(one.name)[:200], description=harmless(one.description or ""), arguments=arguments)
