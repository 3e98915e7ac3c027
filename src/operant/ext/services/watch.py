"""See when something changes in the folders of skills, and in the configuration of their services."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from operant.ext.services.roster import Roster
from operant.ext.services.settings import ServiceSettings
from operant.sdk import Host, NotFound, OperantError, SkillRoots

DEBOUNCE_MS = 300
_LOOK_MS = 1_500
"""How often it is looked for folders that have come into being, such as the one of an agent's first skill."""

_log = logging.getLogger("operant.services")


class Watch:
    """Have the roster look when files of skills were written."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self._host = host
        self._roster = roster
        self._file = Path(host.home) / "operant.yaml"
        self._marks = _marks(self._file)

    async def run(self) -> None:
        """Watch, for ever."""
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType] - 25 ms: only a daemon watches

        (Path(self._host.home) / "skills").mkdir(mode=0o700, exist_ok=True)

        def watched(folders: list[Path]) -> AsyncGenerator[set[Any]]:
            return awatch(
                *folders,
                debounce=DEBOUNCE_MS,
                step=50,
                stop_event=asyncio.Event(),
                yield_on_timeout=True,
                rust_timeout=_LOOK_MS,
                ignore_permission_denied=True,
            )

        while True:
            try:
                await self._until_others(watched)
            except (OSError, OperantError, RuntimeError) as error:  # RuntimeError: what watches is in Rust
                _log.warning("the folders of skills cannot be watched at the moment: %s", error)
                await self._host.clock.sleep(_LOOK_MS / 1_000)

    async def _until_others(self, watched: Callable[[list[Path]], AsyncGenerator[set[Any]]]) -> None:
        """Watch the folders that there are, until there are others."""
        folders = await self._folders()
        async for changes in watched(folders):
            await self._configure()
            there = await self._folders()
            if changes or there != folders:
                await self._roster.look()
            if there != folders:
                return

    async def _configure(self) -> None:
        """Give services what the configuration has for them by now, when the file is not as it was."""
        now = _marks(self._file)
        if now == self._marks:
            return
        self._marks = now
        try:
            settings: ServiceSettings = await asyncio.to_thread(self._host.reread)
        except OperantError as error:
            _log.warning("the configuration of services stays as it was: %s", error.sentence)
        else:
            self._roster.configure(settings.configuration)

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


def _marks(file: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file does."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
