"""The names of all tools that come with Operant."""

from __future__ import annotations

from pathlib import Path

from operant.app.build import Options, running
from operant.app.home import Home
from operant.kernel.records import OWNER
from operant.kernel.syscalls import ToolList


async def offered(folder: Path) -> set[str]:
    async with running(Home(folder / "home"), Options(env={}, overrides={}, work=False)) as made:
        return {spec.name for spec in await made.kernel.call(OWNER, ToolList())}
