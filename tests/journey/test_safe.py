"""Safe: what costs too much, or may not be, is refused in one clear line, and the record says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

from operant.kernel.records import OWNER, MessageQueued, ToolEnded, TurnEnded, text_of
from operant.kernel.syscalls import ApprovalAnswer, ApprovalList, SessionFork
from operant.sdk.testing.server import scripted_server
from tests.journey.house import ended, say, system

LOOP = [{"calls": [{"name": "list_files", "arguments": {}}]}]


async def test_a_model_that_calls_the_same_for_ever_is_stopped(tmp_path: Path) -> None:
    async with scripted_server({"loop": LOOP}) as server, system(tmp_path / "home", server) as made:
        await say(made, "@loop")
        events = await ended(made)
    assert len(server.requests) <= 6
    assert isinstance(events[-1].body, TurnEnded)
    assert events[-1].body.reason == "error"
    assert any(isinstance(event.body, MessageQueued) and text_of(event.body.parts) for event in events)


async def test_the_step_limit_is_told(tmp_path: Path) -> None:
    steps = [{"calls": [{"name": "list_files", "arguments": {"depth": number + 1}}]} for number in range(9)]
    limited: dict[str, object] = {"defaults": {"models": ["scripted/one"], "max_steps": 3}}
    async with scripted_server({"go": steps}) as server, system(tmp_path / "home", server, limited) as made:
        await say(made, "@go")
        events = await ended(made)
    assert len(server.requests) == 3
    assert isinstance(events[-1].body, TurnEnded)
    assert events[-1].body.reason == "max_steps"
    assert "3 steps" in events[-1].body.sentence


async def test_a_day_s_budget_binds_before_the_call(tmp_path: Path) -> None:
    poor: dict[str, object] = {"budgets": {"day": {"usd": 0.0000001}}}
    async with scripted_server() as server, system(tmp_path / "home", server, poor) as made:
        await say(made, "hello")
        events = await ended(made)
    assert server.requests == []
    assert isinstance(events[-1].body, TurnEnded)
    assert events[-1].body.reason == "budget"


async def test_a_copy_inherits_nothing_that_was_allowed(tmp_path: Path) -> None:
    script = [{"calls": [{"name": "shell", "arguments": {"command": "echo hi"}}]}, {"text": "Done."}]
    asking: dict[str, object] = {"agents": {"operant": {"approval": {"shell": "ask"}}}}
    async with scripted_server({"run": script}) as server, system(tmp_path / "home", server, asking) as made:

        async def asked(session: str) -> str:
            async with asyncio.timeout(10):
                while not (waiting := await made.kernel.call(OWNER, ApprovalList(session=session))):
                    await asyncio.sleep(0)
            return waiting[0].approval_id

        await say(made, "@run")
        question = await asked("s")
        await made.kernel.call(OWNER, ApprovalAnswer(approval_id=question, answer="allow", scope="session"))
        await ended(made)
        await say(made, "@run again")
        await ended(made, 2)  # nobody is asked a second time here
        copy = await made.kernel.call(OWNER, SessionFork(session="s"))
        await say(made, "@run once more", copy.key)
        assert await asked(copy.key)


async def test_a_denied_tool_does_not_run_and_keys_do_not_reach_the_shell(tmp_path: Path) -> None:
    script = [{"calls": [{"name": "shell", "arguments": {"command": "env"}}]}, {"text": "Done."}]
    allowed: dict[str, object] = {"agents": {"operant": {"approval": {"shell": "allow"}}}}
    denied: dict[str, object] = {"agents": {"operant": {"approval": {"shell": "deny"}}}}
    async with scripted_server({"env": script}) as server:
        async with system(tmp_path / "a", server, allowed) as made:
            await say(made, "@env")
            ran = [event.body for event in await ended(made) if isinstance(event.body, ToolEnded)]
        async with system(tmp_path / "b", server, denied) as made:
            await say(made, "@env")
            refused = [event.body for event in await ended(made) if isinstance(event.body, ToolEnded)]
    assert ran[0].outcome == "ok", ran[0]
    assert "KEY" not in text_of(ran[0].parts)
    assert refused[0].outcome == "denied"


async def test_an_answer_that_is_faster_than_the_question_is_not_lost(tmp_path: Path) -> None:
    steps = [{"calls": [{"name": "shell", "arguments": {"command": f"echo {at}"}}]} for at in range(8)]
    async with scripted_server({"go": [*steps, {"text": "Done."}]}) as server, system(tmp_path / "h", server) as made:
        await say(made, "@go")
        answered: set[str] = set()
        async with asyncio.timeout(20):
            while len(answered) < len(steps):
                for one in await made.kernel.call(OWNER, ApprovalList()):
                    if one.approval_id not in answered:
                        answered.add(one.approval_id)
                        await made.kernel.call(OWNER, ApprovalAnswer(approval_id=one.approval_id, answer="allow"))
                await asyncio.sleep(0)
        events = await ended(made)
    assert isinstance(events[-1].body, TurnEnded)
    assert events[-1].body.reason == "done"
