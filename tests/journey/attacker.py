"""An obedient model: it runs whatever commands an attacker has told it to, through the shell of a whole system."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from operant.app.build import System
from operant.app.means import find_means
from operant.kernel.records import OWNER, Event, ToolEnded, ToolStarted, text_of
from operant.kernel.syscalls import ApprovalAnswer, ApprovalList
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

    async def run_allowed(self, *commands: str) -> tuple[list[Ran], list[str]]:
        """Return how commands ended that ask first, all answered with yes for the session, and what was asked."""
        asked: dict[str, str] = {}
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.run(*commands))
            async with asyncio.timeout(20):
                while not running.done():
                    for one in await self.made.kernel.call(OWNER, ApprovalList()):
                        if one.approval_id not in asked:
                            yes = ApprovalAnswer(approval_id=one.approval_id, answer="allow", scope="session")
                            await self.made.kernel.call(OWNER, yes)
                        asked[one.approval_id] = one.arguments["command"]
                    await asyncio.sleep(0)
        return running.result(), list(asked.values())

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
    config: dict[str, object] = {
        "agents": {"operant": {"approval": {"shell": "allow"}, "max_steps": 60}},
        **(more or {}),
    }
    async with scripted_server({}) as server, system(home, server, config) as made:
        yield Attacker(made, server)


def _paired(events: list[Event]) -> list[Ran]:
    begun = {event.body.call_id: event.at for event in events if isinstance(event.body, ToolStarted)}
    return [
        Ran(event.body.outcome, text_of(event.body.parts), (event.at - begun.get(event.body.call_id, event.at)) / 1e6)
        for event in events
        if isinstance(event.body, ToolEnded)
    ]


async def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something of this machine that tells nobody."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


def alive(marker: str) -> list[int]:
    """Return the processes of this machine that have a word in their command line."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marker.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found
