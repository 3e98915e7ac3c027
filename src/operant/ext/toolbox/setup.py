"""Register the two tools through which a model reaches all that it is not told about."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from operant.ext.toolbox.ranking import ranked
from operant.ext.toolbox.wording import found
from operant.sdk import CallContext, Host, Json, ToolList, ToolResult, failed, tool

MOST = 5
"""How many tools a search shows: what is shown stays in the conversation, and is paid for with every request."""


@asynccontextmanager
async def setup(host: Host, settings: None) -> AsyncGenerator[None]:
    """Offer the tools while the context is open."""

    @tool(effect="read", timeout_s=10)
    async def tool_search(query: Annotated[str, "what to do, or names"], call: CallContext) -> str:
        """Find more tools: sub-agents, background processes, several files at once, patches, undo, archives, sending
        files, pictures, and those of this workspace."""
        offered = await host.call(ToolList(agent=call.agent.name))
        deferred = [spec for spec in offered if spec.deferred]
        return found(query, ranked(query, deferred)[:MOST], deferred)

    @tool(effect="read", timeout_s=10, forwards=True)
    async def use_tool(name: str, arguments: Json | None = None) -> ToolResult:
        """Use a tool that tool_search has shown."""
        return failed(f"{name!r} is no tool to use this way; tool_search shows those that are.")

    host.tool(tool_search)
    host.tool(use_tool)
    yield
