"""What the owner asks about servers, and tells us of them."""

from __future__ import annotations

from operant.ext.mcp.declared import write_server
from operant.ext.mcp.link import CONNECT_S, Link
from operant.ext.mcp.links import Links
from operant.ext.mcp.seen import name_of
from operant.sdk import (
    Host,
    McpAdd,
    McpApprove,
    McpList,
    McpRemove,
    McpServer,
    McpTest,
    McpTool,
    NotFound,
    Principal,
    Unavailable,
)


class Desk:
    """Answer the syscalls."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def register(self, host: Host) -> None:
        """Offer the syscalls."""
        host.syscall(McpList, self.list)
        host.syscall(McpTest, self.test)
        host.syscall(McpAdd, self.add)
        host.syscall(McpRemove, self.remove)
        host.syscall(McpApprove, self.approve)

    async def list(self, who: Principal, call: McpList) -> tuple[McpServer, ...]:
        """List servers."""
        return tuple(shown(link) for _, link in sorted(self._links.all.items()))

    async def test(self, who: Principal, call: McpTest) -> McpServer:
        """Connect anew."""
        link = self._links.need(call.server)
        await self._connected(link, anew=True)
        return shown(link)

    async def add(self, who: Principal, call: McpAdd) -> McpServer:
        """Write a server down, and begin to use it."""
        write_server(self._links.file, call.server, call.settings)
        self._links.read()
        link = self._links.need(call.server)
        self._links.begin(link)
        return shown(link)

    async def remove(self, who: Principal, call: McpRemove) -> None:
        """Take a server out."""
        write_server(self._links.file, call.server, None)
        self._links.pins.forget(call.server)
        self._links.read()

    async def approve(self, who: Principal, call: McpApprove) -> tuple[str, ...]:
        """Approve tools as they are now."""
        link = self._links.need(call.server)
        await self._connected(link)
        chosen = [one for one in link.listing.tools if not one.refused and call.tool in ("", one.tool)]
        if call.tool and not chosen:
            raise NotFound(f"{call.server} has no tool {call.tool!r} to approve.", f"operant mcp test {call.server}")
        fresh = [one.tool for one in chosen if link.standing(one) != "offered"]
        self._links.pins.approve(link.server, chosen)
        self._links.changed()
        return tuple(fresh)

    async def _connected(self, link: Link, *, anew: bool = False) -> None:
        """Wait for a connection. Raises `Unavailable`."""
        if link.state == "off":
            raise Unavailable(f"{link.server.name} is disabled.", "Take `disabled` out of its settings.")
        if not link.server.fault:
            if anew and link.state != "waiting":
                link.renew()
            self._links.begin(link)
            await link.tried(CONNECT_S)
        if link.state != "connected":
            sentence = link.sentence or "it does not answer"
            raise Unavailable(f"The MCP server {link.server.name} cannot be used: {sentence}")


def shown(link: Link) -> McpServer:
    """Return a server as it stands."""
    listing = link.listing
    return McpServer(
        name=link.server.name,
        kind="http" if link.server.is_http else "stdio",
        where=link.server.where,
        source=link.server.source,
        state=link.state,
        sentence=link.sentence,
        protocol=link.protocol,
        version=link.version,
        tools=tuple(
            McpTool(
                name=name_of(link.server.name, one.tool),
                tool=one.tool,
                state="refused" if one.refused else link.standing(one),
                why=one.refused,
                description=one.description,
            )
            for one in listing.tools
        ),
        left_out=listing.left_out,
        resources=len(listing.resources),
        prompts=len(listing.prompts),
    )
