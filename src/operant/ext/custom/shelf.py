"""The custom tools of each agent as their files stand now."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from operant.ext.custom.bench import Bench, CannotUse, File
from operant.ext.custom.made import MadeTool
from operant.sdk import Agent, Host, ToolList, ToolSpec

FOLDER = "tools"
MOST_BYTES = 200_000
MOST_FILES = 100

_log = logging.getLogger("operant.custom")


class Print(NamedTuple):
    """Which state of a file this is."""

    name: str
    changed_ns: int
    size: int
    inode: int


class _Known(NamedTuple):
    prints: tuple[Print, ...]
    tools: dict[str, MadeTool]
    specs: dict[str, tuple[ToolSpec, ...]]
    """What each state of a file has, by its digest."""


_NOTHING = _Known((), {}, {})


class Shelf:
    """The toolbox; what a file has is asked of it once a state, in a process of its own."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._bench = Bench(host)
        self._known: dict[str, _Known] = {}

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, MadeTool]:
        """Return an agent's tools as they were last looked at."""
        return self._known.get(agent.name, _NOTHING).tools

    def digest(self, agent: Agent, name: str) -> str:
        """Return the digest of the file that a tool is from, or nothing."""
        made = self.tools(agent).get(name)
        return made.file.digest if made else ""

    async def look(self, agent: Agent) -> None:
        """Look at the files, and import those that are not as they were."""
        if not agent.workspace:
            return
        folder = f"{agent.workspace}/{FOLDER}"
        prints = _prints(folder)
        before = self._known.get(agent.name, _NOTHING)
        if prints != before.prints:
            self._known[agent.name] = await self._read(agent, Path(folder), prints, before)

    async def _read(self, agent: Agent, folder: Path, prints: tuple[Print, ...], before: _Known) -> _Known:
        taken = {spec.name for spec in await self._host.call(ToolList())}
        tools: dict[str, MadeTool] = {}
        specs: dict[str, tuple[ToolSpec, ...]] = {}
        for one in prints:
            path = folder / one.name
            try:
                file = File(str(path), hashlib.sha256(_source(path)).hexdigest())
                specs[file.digest] = before.specs.get(file.digest) or await self._bench.describe(agent, file)
            except (OSError, CannotUse) as error:
                _log.warning("custom tool %s of %s is left out: %s", one.name, agent.name, error)
                continue
            for spec in specs[file.digest]:
                if spec.name in taken or spec.name in tools:
                    _log.warning("custom tool %s of %s is skipped: there is one of this name", spec.name, agent.name)
                    continue
                tools[spec.name] = MadeTool(spec, file, self._bench)
        return _Known(prints, tools, specs)


def _prints(folder: str) -> tuple[Print, ...]:
    """Return the state of every plain file that can be a tool; links are none. Asked on every turn."""
    if not os.access(folder, os.R_OK):
        return ()
    try:
        with os.scandir(folder) as entries:
            found = [
                Print(entry.name, info.st_mtime_ns, info.st_size, info.st_ino)
                for entry in entries
                if entry.name.endswith(".py") and not entry.name.startswith(("_", "."))
                if stat.S_ISREG((info := entry.stat(follow_symlinks=False)).st_mode)
            ]
    except OSError:
        return ()
    return tuple(sorted(found)[:MOST_FILES])


def _source(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(handle, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise CannotUse(f"it is larger than {MOST_BYTES:,} bytes")
    return data
