"""See when something changes in the folders of skills."""

from __future__ import annotations

import asyncio
from pathlib import Path

from operant.ext.services.roster import Roster
from operant.sdk import Host, NotFound, SkillRoots

DEBOUNCE_MS = 300
_LOOK_MS = 1_500
"""How often it is looked for folders that have come into being, such as the one of an agent's first skill."""


class Watch:
    """Have the roster look when files of skills were written."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self._host = host
        self._roster = roster

    async def run(self) -> None:
        """Watch, for ever."""
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType] - 25 ms: only a daemon watches

        (Path(self._host.home) / "skills").mkdir(mode=0o700, exist_ok=True)
        while True:
            folders = await self._folders()
            stop = asyncio.Event()
            watching = awatch(
                *folders, debounce=DEBOUNCE_MS, step=50, stop_event=stop, yield_on_timeout=True, rust_timeout=_LOOK_MS
            )
            async for changes in watching:
                there = await self._folders()
                if changes or there != folders:
                    await self._roster.look()
                if there != folders:
                    break

    async def _folders(self) -> list[Path]:
        """Return the folders of skills that there are."""
        roots: dict[Path, None] = {Path(self._host.home) / "skills": None}
        for agent in self._host.agents.list():
            roots |= dict.fromkeys(map(Path, await self._roots(agent.name)))
        return [root for root in roots if root.is_dir()]

    async def _roots(self, agent: str) -> tuple[str, ...]:
        try:
            return await self._host.call(SkillRoots(agent=agent))
        except NotFound:  # without skills there are no services
            return ()
