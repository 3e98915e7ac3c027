"""What the owner asks about servers, and tells us of them."""

from __future__ import annotations

from urllib.parse import urlsplit

from operant.ext.mcp.declared import write_server
from operant.ext.mcp.link import CONNECT_S, Link
from operant.ext.mcp.links import Links
from operant.ext.mcp.seen import name_of
from operant.ext.mcp.visits import LOCAL, Visits
from operant.sdk import (
    Host,
    Invalid,
    McpAdd,
    McpApprove,
    McpCallback,
    McpList,
    McpLogin,
    McpLogout,
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

    def __init__(self, links: Links, visits: Visits) -> None:
        self._links = links
        self._visits = visits

    def register(self, host: Host) -> None:
        """Offer the syscalls."""
        host.syscall(McpList, self.list)
        host.syscall(McpTest, self.test)
        host.syscall(McpAdd, self.add)
        host.syscall(McpRemove, self.remove)
        host.syscall(McpApprove, self.approve)
        host.syscall(McpLogin, self.login)
        host.syscall(McpCallback, self.callback)
        host.syscall(McpLogout, self.logout)

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
        self._links.logins.forget(call.server)
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

    async def login(self, who: Principal, call: McpLogin) -> str:
        """Begin a login."""
        link = self._links.need(call.server)
        problem = _no_login(link)
        if problem:
            raise Invalid(f"Nobody logs in to {call.server}: {problem}")
        _check_redirect(call.redirect)
        return await self._visits.begin(link.access, call.redirect)

    async def callback(self, who: Principal, call: McpCallback) -> McpServer:
        """End a login, and connect with it."""
        link = self._links.need(call.server)
        await self._visits.finish(call.server, call.address)
        await self._connected(link, anew=True)
        return shown(link)

    async def logout(self, who: Principal, call: McpLogout) -> bool:
        """Forget a login."""
        link = self._links.need(call.server)
        had = self._links.logins.forget(call.server)
        if had:
            link.renew()
        return had

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


def _no_login(link: Link) -> str:
    """Say why a server has no login, if so."""
    chosen = link.server.settings.oauth
    if link.server.fault:
        return f"{link.server.fault}."
    if not link.server.is_http:
        return "it is a program of this machine."
    if link.access.has_header:
        return "its settings hold the header Authorization."
    return "its settings hold credentials of a program." if chosen is not None and not chosen.by_person else ""


def _check_redirect(address: str) -> None:
    """Refuse places that a code must not be sent to. Raises `Invalid`."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL):
        raise Invalid(f"{address!r} is no place to come back to.", "Take http://127.0.0.1:PORT/callback.")


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
        login=link.access.login is not None,
    )
