"""What servers have beside tools: resources to read and prompts to fill in, through two tools for all servers."""

from __future__ import annotations

from typing import Annotated

from operant.ext.mcp.link import Link
from operant.ext.mcp.links import Links, has_things, may_use
from operant.ext.mcp.listing import Thing
from operant.ext.mcp.remote import OUTSIDE, contents_of, parts_of
from operant.sdk import CallContext, FunctionTool, Host, Json, NotFound, Part, Text, ToolResult, Unavailable, tool

MOST_FOUND = 20


def make_tools(host: Host, links: Links) -> dict[str, FunctionTool]:
    """Make the tools; they are offered while a server has resources or prompts."""

    @tool(effect="read", timeout_s=30, deferred=True)
    async def mcp_find(call: CallContext, query: Annotated[str, "words, or nothing for all"] = "") -> ToolResult:
        """Find resources and prompts of MCP servers."""
        lines = [
            line
            for link in _mine(links, call)
            for line in _lines(link)
            if all(word in line.lower() for word in query.lower().split())
        ]
        more = [f"[{len(lines) - MOST_FOUND} more: give more words]"] if len(lines) > MOST_FOUND else []
        text = "\n".join([*lines[:MOST_FOUND], *more]) or "Nothing was found."
        return ToolResult(parts=(Text(text=text),), labels=(OUTSIDE,))

    @tool(effect="read", timeout_s=120, deferred=True)
    async def mcp_read(
        server: str,
        name: Annotated[str, "a resource's address, or a prompt's name"],
        call: CallContext,
        arguments: Annotated[Json | None, "of the prompt"] = None,
    ) -> ToolResult:
        """Read a resource, or a filled-in prompt, of an MCP server."""
        link = next((one for one in _mine(links, call) if one.server.name == server), None)
        if link is None:
            raise NotFound(f"There is no MCP server {server!r} with resources or prompts.", "mcp_find shows them.")
        if name in {one.name for one in link.listing.prompts}:
            parts = await _prompt(host, link, name, arguments or {})
        else:
            parts = await _resource(host, link, name)
        return ToolResult(parts=parts, labels=(OUTSIDE,))

    return {one.spec.name: one for one in (mcp_find, mcp_read)}


def _mine(links: Links, call: CallContext) -> list[Link]:
    """Return the servers that an agent has and that have something."""
    servers = (link for _, link in sorted(links.all.items()))
    return [link for link in servers if has_things(link) and may_use(call.agent.name, link.server)]


def _lines(link: Link) -> list[str]:
    name = link.server.name
    resources = [f"{name} resource {one.uri} {_about(one)}" for one in link.listing.resources]
    prompts = [
        f"{name} prompt {one.name}({', '.join(one.arguments)}) {one.description}" for one in link.listing.prompts
    ]
    return [line.rstrip() for line in (*resources, *prompts)]


def _about(one: Thing) -> str:
    return f"{one.name}: {one.description}" if one.description else one.name


async def _resource(host: Host, link: Link, uri: str) -> tuple[Part, ...]:
    from mcp import MCPError

    client = await link.client()
    try:
        said = await client.read_resource(uri)
    except MCPError as error:
        raise _refusal(link, error) from error
    return tuple([await contents_of(one, host.blobs) for one in said.contents])


async def _prompt(host: Host, link: Link, name: str, arguments: Json) -> tuple[Part, ...]:
    from mcp import MCPError

    client = await link.client()
    try:
        said = await client.get_prompt(name, {key: str(value) for key, value in arguments.items()})
    except MCPError as error:
        raise _refusal(link, error) from error
    parts: list[Part] = []
    for message in said.messages:
        parts += [Text(text=f"[{message.role}]"), *await parts_of([message.content], host.blobs)]
    return tuple(parts)


def _refusal(link: Link, error: Exception) -> Unavailable:
    return Unavailable(f"The MCP server {link.server.name} refused: {' '.join(str(error).split())[:300]}")
