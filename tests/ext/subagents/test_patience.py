"""The time limit of a turn while a person is asked somewhere below it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from operant.app.build import System
from operant.kernel.records import OWNER, ApprovalAsked, Event, TurnEnded
from operant.kernel.syscalls import ApprovalAnswer, ApprovalList, SessionList
from operant.sdk.testing.server import ScriptedServer
from tests.ext.subagents.test_subagents import call, spawn
from tests.journey.house import ended, say, system

LIMIT_S = 5.0
"""Long enough for a busy machine to come to the question."""
LIMITED: dict[str, object] = {"agents": {"operant": {"limits": {"turn_s": LIMIT_S}}}}
SHELL = call("shell", command="echo hello")


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(
        {
            "asks": [{"calls": [spawn("@shell")]}, {"text": "Asked."}],
            "twice": [{"calls": [spawn("@shell", "@shell")]}, {"text": "Asked."}],
            "deep": [{"calls": [spawn("@asks")]}, {"text": "Asked."}],
            "shell": [{"calls": [SHELL]}, {"text": "Ran."}],
            "stuck": [{"calls": [spawn("@hangs")]}, {"text": "Not reached."}],
            "hangs": [{"calls": [SHELL]}, {"hang": True}],
        }
    )
    async with made.serving():
        yield made


async def questions(made: System, count: int) -> list[str]:
    """Wait for so many questions and return their ids."""
    async with asyncio.timeout(20):
        while len(found := await made.kernel.call(OWNER, ApprovalList())) < count:
            await asyncio.sleep(0)
    return [one.approval_id for one in found]


async def outlast(made: System) -> None:
    """Wait for longer than a turn may take, in which nothing ends."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(LIMIT_S + 0.5):
            while not await endings(made):
                await asyncio.sleep(0)


async def endings(made: System) -> list[Event]:
    found: list[Event] = []
    for info in await made.kernel.call(OWNER, SessionList(limit=100)):
        found += [one for one in await made.kernel.store.events(info.key) if isinstance(one.body, TurnEnded)]
    return found


async def answer(made: System, *ids: str) -> None:
    for one in ids:
        await made.kernel.call(OWNER, ApprovalAnswer(approval_id=one, answer="allow"))


async def test_it_stands_still_while_questions_wait(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, LIMITED) as made:
        await say(made, "@twice")
        first, second = await questions(made, 2)
        await outlast(made)
        await answer(made, first)
        await answer(made, second)
        assert [one.body.reason for one in await ended(made) if isinstance(one.body, TurnEnded)] == ["done"]


async def test_it_goes_on_once_all_are_answered(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, LIMITED) as made:
        await say(made, "@stuck")
        await answer(made, *await questions(made, 1))
        assert [one.body.reason for one in await ended(made) if isinstance(one.body, TurnEnded)] == ["budget"]


async def test_it_stands_still_also_after_a_restart(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, LIMITED) as made:
        await say(made, "@deep")
        await questions(made, 1)
    async with system(tmp_path / "home", server, LIMITED) as made:
        found = await questions(made, 1)
        await outlast(made)
        await answer(made, *found)
        assert [one.body.reason for one in await ended(made) if isinstance(one.body, TurnEnded)] == ["done"]


async def test_a_stop_ends_it_all_the_same(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, LIMITED) as made:
        await say(made, "@deep")
        await questions(made, 1)
        made.kernel.sessions.get("s").stop()
        events = await ended(made)
        assert [one.body.reason for one in events if isinstance(one.body, TurnEnded)] == ["stopped"]
        assert not any(isinstance(one.body, ApprovalAsked) for one in events)
