"""Killed at any point while sub-agents work: each task is done, once, and the parent gets every result."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from operant.kernel.records import OWNER, Event, MessageReceived, ToolEnded, TurnEnded, text_of
from operant.kernel.syscalls import SessionList
from operant.sdk.testing.server import ScriptedServer
from tests.ext.subagents.test_subagents import call, spawn
from tests.journey.house import system

pytestmark = [pytest.mark.crash, pytest.mark.slow]

SCRIPT: dict[str, Any] = {
    "two": [{"calls": [spawn("@make a", "@make b")]}, {"text": "Both are done."}],
    "off": [{"calls": [spawn("@make a", "@make b", wait=False)]}, {"text": "They work."}, {"text": "Seen."}],
    "make": [{"calls": [call("shell", command="echo {1} >> made.txt")]}, {"text": "I made {1}."}],
    "sub-agent": [{"text": "Noted."}],
}
MORE: dict[str, object] = {"agents": {"operant": {"approval": {"*": "allow"}, "arrival": "queue"}}}
POINTS = [
    "claimed:1", "intended:1", "acting:1", "accepted:2", "accepted:3", "claimed:2", "claimed:3", "replied:2",
    "replied:3", "acting:2", "acted:2", "acted:3", "queued:1", "queued:2", "replied:6",
]  # fmt: skip


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


async def die_and_finish(home: Path, words: str, point: str) -> bool:
    """Live once until the point, then to the end; tell whether the point was passed."""
    died = False
    for fault in (point, ""):
        env = {**os.environ, "OPERANT_FAULT": fault}
        life = subprocess.Popen(
            [sys.executable, "-m", "tests.ext.subagents.life", str(home), words],
            env=env,
            cwd=Path(__file__).parents[3],
            stderr=subprocess.PIPE,
        )
        _, said = await asyncio.to_thread(life.communicate, timeout=60)
        assert life.returncode in (0, -9), said.decode()
        died = died or life.returncode == -9
        if not fault:
            assert life.returncode == 0, said.decode()
    return died


async def histories(home: Path, server: ScriptedServer) -> dict[str, list[Event]]:
    async with system(home, server, MORE) as made:
        found = await made.kernel.call(OWNER, SessionList(limit=100))
        return {one.key: list(await made.kernel.store.events(one.key)) for one in found}


def count(events: list[Event], kind: type) -> int:
    return sum(isinstance(event.body, kind) for event in events)


@pytest.mark.parametrize("point", POINTS)
async def test_waiting_parents_find_their_children_again(point: str, tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "home"
    async with system(home, server, MORE):
        pass  # writes the settings
    assert await die_and_finish(home, "@two", point)
    found = await histories(home, server)
    parent = found.pop("s")
    assert len(found) == 2
    for events in found.values():
        assert (count(events, MessageReceived), count(events, TurnEnded)) == (1, 1)
    last = parent[-1].body
    assert isinstance(last, TurnEnded)
    assert last.reason == "done"
    (result,) = [text_of(event.body.parts) for event in parent if isinstance(event.body, ToolEnded)]
    assert "I made a." in result
    assert "I made b." in result
    file = home / "agents/operant/workspace/made.txt"
    made = Counter(file.read_text().split() if file.exists() else ())
    interrupted = [one for events in found.values() for one in events if _interrupted(one)]
    assert max(made.values(), default=1) == 1
    assert sum(made.values()) + len(interrupted) >= 2


@pytest.mark.parametrize("point", ["acted:1", "claimed:2", "acting:2", "queued:2", "accepted:4", "acknowledging:4"])
async def test_results_that_nobody_waits_for_come_once(point: str, tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "home"
    async with system(home, server, MORE):
        pass
    assert await die_and_finish(home, "@off", point)
    found = await histories(home, server)
    parent = found.pop("s")
    assert len(found) == 2
    came = [text_of(event.body.parts) for event in parent if isinstance(event.body, MessageReceived)][1:]
    assert sorted(one.partition("\n")[2] for one in came) == ["I made a.", "I made b."]


def _interrupted(event: Event) -> bool:
    return isinstance(event.body, ToolEnded) and event.body.outcome == "interrupted"
