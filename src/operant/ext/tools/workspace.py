"""Where an agent's files are, and how to work on them without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from operant.ext.tools.settings import PROTECTED, ToolsSettings
from operant.kit.beneath import Absent, Beneath
from operant.sdk import Agent

R = TypeVar("R")


class Workspaces:
    """Open the workspace of an agent."""

    def __init__(self, settings: ToolsSettings) -> None:
        self.protected = (*PROTECTED, *settings.protected)
        self._shared = settings.shared

    def open(self, agent: Agent) -> Beneath:
        """Return the agent's files; close them after use. Raises `FileError`."""
        return Beneath(self.root(agent), roots=self.roots, protected=self.protected)

    def root(self, agent: Agent) -> str:
        """Return the directory of an agent's workspace. Raises `FileError` when it has none."""
        if not agent.workspace:
            raise Absent(f"The agent {agent.name} has no workspace.")
        return agent.workspace

    @property
    def roots(self) -> Mapping[str, str]:
        """Return the directories elsewhere that workspaces see, by name."""
        return {"shared": self._shared} if self._shared and Path(self._shared).is_dir() else {}

    async def use(self, agent: Agent, work: Callable[[Beneath], R]) -> R:
        """Do work on an agent's files in a thread; a cancelled call is over only when the thread is."""

        def opened() -> R:
            with self.open(agent) as files:
                return work(files)

        return await in_thread(opened)


async def in_thread(work: Callable[[], R]) -> R:
    """Run a function in a thread; when cancelled, wait for it first, so that nothing of the call runs on."""
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait({future})
        if not future.cancelled():
            future.exception()
        raise
