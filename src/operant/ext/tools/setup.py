"""Register the tools and the hook that keeps every tool's output readable."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.tools.edit import edit_tools
from operant.ext.tools.files import file_tools
from operant.ext.tools.history import history_tools
from operant.ext.tools.output import OutputLimit, output_tools
from operant.ext.tools.search import search_tools
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.shell import shell_tools
from operant.ext.tools.workspace import Workspaces
from operant.sdk import TOOL_AFTER, Host

AFTER_OTHERS = -900  # redaction and the like come first: what they take out is in no blob


@asynccontextmanager
async def setup(host: Host, settings: ToolsSettings) -> AsyncGenerator[None]:
    """Offer the tools while the context is open."""
    workspaces = Workspaces(settings)
    tools = (
        *shell_tools(host, settings, workspaces, dict(os.environ)),
        *file_tools(host, settings, workspaces),
        *edit_tools(host, settings, workspaces),
        *search_tools(settings, workspaces),
        *output_tools(host),
        *history_tools(host),
    )
    for tool in tools:
        host.tool(tool)
    host.hook(TOOL_AFTER, OutputLimit(host.blobs).apply, priority=AFTER_OTHERS)
    yield
