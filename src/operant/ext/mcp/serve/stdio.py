"""The server over standard input and output, for a program that starts us."""

from __future__ import annotations

from collections.abc import Callable

from operant.ext.mcp.serve.offer import make_server
from operant.ext.mcp.settings import ServeSettings
from operant.sdk import Client


async def serve(client: Client, settings: ServeSettings, new_id: Callable[[], str]) -> None:
    """Serve whoever started this process until its input ends."""
    from mcp.server.stdio import stdio_server

    server = make_server(lambda context: client, settings, new_id)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
