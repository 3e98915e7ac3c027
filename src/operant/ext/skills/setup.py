"""Offer skills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from operant.ext.skills.calls import SkillCalls
from operant.ext.skills.commands import SkillCommand
from operant.ext.skills.settings import SkillSettings
from operant.ext.skills.shelf import Shelf
from operant.ext.skills.tools import MANAGE, SkillTools
from operant.sdk import (
    DISPATCH_BEFORE,
    TOOL_AFTER,
    DispatchInput,
    Host,
    SkillAdd,
    SkillGet,
    SkillList,
    SkillRemove,
    SkillReset,
    SkillRoots,
    SkillValidate,
    ToolAfterInput,
)


@asynccontextmanager
async def setup(host: Host, settings: SkillSettings) -> AsyncGenerator[None]:
    """Offer skills while the context is open."""
    shelf = Shelf(Path(host.home), settings, host.variable)
    tools = SkillTools(host, shelf, settings)
    calls = SkillCalls(host, shelf)

    async def arrived(input: DispatchInput) -> None:
        await asyncio.to_thread(tools.look, input.agent)

    async def changed(input: ToolAfterInput) -> None:
        if input.name == MANAGE:
            await asyncio.to_thread(tools.look, input.agent)

    host.toolbox(tools)
    host.shell_commands(SkillCommand(shelf, tools), over=True)  # procps has a `skill` of its own
    host.hook(DISPATCH_BEFORE, arrived, fail="open")
    host.hook(TOOL_AFTER, changed, priority=-950)
    host.syscall(SkillList, calls.list)
    host.syscall(SkillRoots, calls.roots)
    host.syscall(SkillGet, calls.get)
    host.syscall(SkillAdd, calls.add)
    host.syscall(SkillRemove, calls.remove)
    host.syscall(SkillReset, calls.reset)
    host.syscall(SkillValidate, calls.validate)
    yield
