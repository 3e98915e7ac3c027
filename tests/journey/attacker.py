"""An obedient model: it runs whatever commands an attacker has told it to, through the shell of a whole system."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from operant.app.build import System
from operant.app.means import find_means
from operant.kernel.records import Event, ToolEnded, ToolStarted, text_of
from operant.sdk.testing.server import ScriptedServer, scripted_server
from tests.journey.house import ended, say, system

CANARY = "CANARY-5f0c1d"
"""What no command may ever print, and no program may ever be told."""

_MEANS = asyncio.run(find_means(("bubblewrap",)))
BUBBLEWRAP = pytest.mark.skipif(
    _MEANS.kind != "bubblewrap", reason=f"needs bubblewrap: {_MEANS.why} {_MEANS.remedy} (apt install bubblewrap)"
)


class Ran(NamedTuple):
    """How a command ended."""

    outcome: str
    text: str
    seconds: float


class Attacker:
    """Run commands in one system; each is one call of the tool `shell`."""

    def __init__(self, made: System, server: ScriptedServer) -> None:
        self.made = made
        self.workspace = made.home.agents / "operant" / "workspace"
        self._server = server
        self._turns = 0

    async def run(self, *commands: str, timeout_s: float = 20.0) -> list[Ran]:
        """Return how each command ended."""
        self._turns += 1
        session = f"s{self._turns}"
        calls = [{"name": "shell", "arguments": {"command": one, "timeout_s": timeout_s}} for one in commands]
        self._server.script(session, [*({"calls": [call]} for call in calls), {"text": "Done."}])
        await say(self.made, f"@{session}", session)
        events = await ended(self.made, session=session)
        return _paired(events)

    async def says(self, *commands: str, timeout_s: float = 20.0) -> list[str]:
        """Return what each command said."""
        return [one.text for one in await self.run(*commands, timeout_s=timeout_s)]

    def put(self, name: str, text: str, mode: int = 0o600) -> Path:
        """Write a file into the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


@asynccontextmanager
async def attacker(home: Path, more: dict[str, object] | None = None) -> AsyncIterator[Attacker]:
    """Start a system in which the shell asks nobody."""
    config: dict[str, object] = {"agents": {"operant": {"approval": {"shell": "allow"}, "max_steps": 60}}, **(more or {})}
    async with scripted_server({}) as server, system(home, server, config) as made:
        yield Attacker(made, server)


def _paired(events: list[Event]) -> list[Ran]:
    begun = {event.body.call_id: event.at for event in events if isinstance(event.body, ToolStarted)}
    return [
        Ran(event.body.outcome, text_of(event.body.parts), (event.at - begun.get(event.body.call_id, event.at)) / 1e6)
        for event in events
        if isinstance(event.body, ToolEnded)
    ]


def alive(marker: str) -> list[int]:
    """Return the processes of this machine that have a word in their command line."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if marker.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                continue
    return found
