"""Answers, and the word that there is none, across deadlines, restarts and kills."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from operant.app.build import System
from operant.kernel.records import OWNER
from operant.kernel.syscalls import A2aMessage, A2aSend, SessionErase
from operant.sdk import MessageReceived, text_of
from operant.sdk.testing.server import ScriptedServer, scripted_server
from tests.ext.a2a.test_messages import LONG, TWO, heard, history, messages
from tests.ext.a2a.waiting import until
from tests.journey.house import ended, say, system

SOON = 0.002
"""Minutes of a deadline that is over in a moment."""


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        server.script("hang", [{"hang": True}])
        server.script("quick", [{"text": "Here it is."}])
        yield server


async def from_s(made: System, text: str, minutes: float = 0.0) -> A2aMessage:
    """Send the coder a message from session `s`, which has one turn behind it."""
    await say(made, "hello")
    await ended(made)
    return await made.kernel.call(OWNER, A2aSend(text=text, to="coder", sender="s", minutes=minutes))


async def pieces(made: System, count: int) -> list[MessageReceived]:
    """Wait for so many pieces from the other agent in session `s`."""

    async def found() -> list[MessageReceived]:
        there = [one for one in heard(await history(made, "s")) if one.author == "a2a:coder"]
        return there if len(there) >= count else []

    return await until(found)


async def settled(made: System) -> None:
    """Wait until nobody is owed anything and nothing is at work."""

    async def quiet() -> bool:
        return not (await messages(made, open=True) or await made.kernel.store.unfinished())

    await until(quiet)


async def test_the_sender_is_told_when_no_answer_came(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, TWO) as made:
        sent = await from_s(made, "@hang", SOON)
        (late,) = await pieces(made, 1)
        (one,) = await messages(made)
    assert "No answer of coder came within 0.002 minutes" in text_of(late.parts)
    assert (late.external_id, late.reply_to) == (f"a2a:{sent.id}:late", sent.id)
    assert one.state == "late"


async def test_a_deadline_passes_while_nothing_runs(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, TWO) as made:
        await from_s(made, "@hang", 0.02)
    async with system(tmp_path / "home", server, TWO) as made:
        await pieces(made, 1)
    async with system(tmp_path / "home", server, TWO) as made:
        await settled(made) if not await made.kernel.store.unfinished() else None
        found = await pieces(made, 1)
    assert len(found) == 1


async def test_an_answer_that_comes_late_is_passed_on_as_such(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("slow", [{"text": "At last.", "first_delay_ms": 600}])
    async with system(tmp_path / "home", server, TWO) as made:
        await from_s(made, f"{LONG}@slow", SOON)
        late, answer = await pieces(made, 2)
        await settled(made)
        (one,) = await messages(made)
    assert "No answer" in text_of(late.parts)
    assert "It comes after its time." in text_of(answer.parts)
    assert text_of(answer.parts).endswith("At last.")
    assert one.state == "answered"


async def test_an_answer_comes_after_a_restart(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, TWO) as made:
        sent = await from_s(made, f"{LONG}@hang")
    server.script("hang", [{"text": "Back again."}])
    async with system(tmp_path / "home", server, TWO) as made:
        (answer,) = await pieces(made, 1)
        await settled(made)
    async with system(tmp_path / "home", server, TWO) as made:
        await settled(made)
        again = await pieces(made, 1)
    assert answer.reply_to == sent.id
    assert text_of(answer.parts).endswith("Back again.")
    assert len(again) == 1


async def test_a_sender_that_was_erased_is_told_nothing(tmp_path: Path, server: ScriptedServer) -> None:
    server.script("slow", [{"text": "Here.", "first_delay_ms": 200}])
    async with system(tmp_path / "home", server, TWO) as made:
        sent = await from_s(made, "@slow")
        await made.kernel.call(OWNER, SessionErase(session="s"))
        await ended(made, session=sent.session)
        await settled(made)
        head = await made.kernel.store.head("s")
    assert head is None


@pytest.mark.crash
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "fault", ["claimed:1", "computing:1", "replied:1", "queued:1", "received:1", "accepted:1", "claimed:2", "replied:2"]
)
async def test_killed_at_a_point_there_is_exactly_one_answer(
    tmp_path: Path, server: ScriptedServer, fault: str
) -> None:
    home = tmp_path / "home"
    async with system(home, server, TWO) as made:
        sent = await from_s(made, f"{LONG}@hang")
    server.script("hang", [{"text": "Only once."}])
    env = {**os.environ, "OPERANT_FAULT": fault, "OPERANT_HOME": str(home)}
    for _ in range(2):
        arguments = [sys.executable, "-m", "tests.crash.child", str(home), "0"]
        life = await asyncio.to_thread(
            subprocess.run, arguments, env=env, cwd=Path(__file__).parents[3], capture_output=True, timeout=60
        )
        assert life.returncode in (0, -9), life.stderr.decode()
    async with system(home, server, TWO) as made:
        await pieces(made, 1)
        await settled(made)
        found = await pieces(made, 1)
        asked = heard(await history(made, sent.session))
    assert [one.external_id for one in found] == [f"a2a:{sent.id}:answer"]
    assert len(asked) == 1
