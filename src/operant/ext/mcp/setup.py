"""Put MCP together: the servers of others as tools, and this agent as a server."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.mcp.desk import Desk
from operant.ext.mcp.links import FIRST_S, Links
from operant.ext.mcp.serve.http import Endpoint
from operant.ext.mcp.settings import McpSettings
from operant.ext.mcp.things import make_tools
from operant.ext.mcp.visits import Visits
from operant.sdk import DAEMON_STARTED, DISPATCH_BEFORE, DispatchInput, Host, Plain


@asynccontextmanager
async def setup(host: Host, settings: McpSettings) -> AsyncGenerator[None]:
    """Offer servers' tools while the context is open."""
    if not logging.getLogger("mcp").handlers:  # or its tracebacks go to the terminal of whoever runs us
        logging.getLogger("mcp").addHandler(logging.NullHandler())
    links = Links(host, settings)
    links.extra = make_tools(host, links)

    async def started(input: Plain) -> None:
        links.start()

    async def arrived(input: DispatchInput) -> None:
        await links.first()

    endpoint = Endpoint(host, settings.serve)
    visits = Visits(host)
    async with endpoint.living(), links.living(), visits.living():
        if settings.serve.http:
            host.mount(endpoint.mount())
        Desk(links, visits).register(host)
        host.toolbox(links)
        host.hook(DAEMON_STARTED, started)
        host.hook(DISPATCH_BEFORE, arrived, fail="open", timeout_s=FIRST_S + 5)
        yield
