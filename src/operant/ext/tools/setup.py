"""Register the tools and the hook that keeps every tool's output readable."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.tools.changes import Changes
from operant.ext.tools.edit import edit_tools
from operant.ext.tools.extract import extract_tools
from operant.ext.tools.files import file_tools
from operant.ext.tools.history import history_tools
from operant.ext.tools.keeper import Keeper
from operant.ext.tools.moving import moving_tools
from operant.ext.tools.notebook import notebook_tools
from operant.ext.tools.output import OutputLimit, output_tools
from operant.ext.tools.patch import patch_tools
from operant.ext.tools.process import process_tools
from operant.ext.tools.search import search_tools
from operant.ext.tools.send import send_tools
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.shell import Shell, shell_tools
from operant.ext.tools.undo import undo_tools
from operant.ext.tools.workspace import Workspaces
from operant.sdk import SESSION_ARCHIVED, TOOL_AFTER, Host

AFTER_OTHERS = -900  # redaction and the like come first: what they take out is in no blob


@asynccontextmanager
async def setup(host: Host, settings: ToolsSettings) -> AsyncGenerator[None]:
    """Offer the tools while the context is open."""
    workspaces = Workspaces(settings)
    shell = Shell(host, settings, workspaces, dict(os.environ))
    keeper = Keeper(host, shell.launched)
    changes = Changes(host, workspaces, settings.max_file_bytes)
    tools = (
        *shell_tools(shell),
        *process_tools(keeper),
        *file_tools(host, settings, workspaces, changes),
        *edit_tools(changes),
        *patch_tools(changes),
        *notebook_tools(changes),
        *moving_tools(changes),
        *undo_tools(changes),
        *extract_tools(settings, workspaces, changes),
        *send_tools(host, settings, workspaces),
        *search_tools(settings, workspaces),
        *output_tools(host),
        *history_tools(host),
    )
    for tool in tools:
        host.tool(tool)
    host.hook(TOOL_AFTER, OutputLimit(host).apply, priority=AFTER_OTHERS)
    host.hook(SESSION_ARCHIVED, keeper.archived)
    async with keeper.open():
        yield
