"""Serve one editor over two streams until it closes its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from acp import run_agent
from acp.interfaces import Agent as Protocol

from operant.cli.acp.desk import Desk
from operant.sdk.client import Client

Streams = Coroutine[Any, Any, tuple[asyncio.StreamReader, asyncio.StreamWriter]]


async def serve(client: Client, agent: str, shared: str, make: Callable[[], Streams]) -> None:
    """Serve; a turn that runs when the editor goes away goes on where it runs.

    `agent` answers in new sessions; `shared` is the directory that all workspaces see under that name.
    """
    reader, writer = await make()
    async with asyncio.TaskGroup() as group:
        desk = Desk(client, group, agent, shared)
        try:
            await run_agent(cast("Protocol", desk), writer, reader, use_unstable_protocol=True)
        finally:
            desk.leave()
