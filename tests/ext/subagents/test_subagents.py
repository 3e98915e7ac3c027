"""Sub-agents in a running system: side by side, within their parent's rights, stopped and paid for with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from operant.app.build import System
from operant.kernel.errors import NotFound
from operant.kernel.records import (
    OWNER,
    ApprovalAsked,
    Delta,
    Event,
    MessageQueued,
    MessageReceived,
    Note,
    SessionInfo,
    ToolEnded,
    TurnEnded,
    text_of,
)
from operant.kernel.syscalls import (
    ApprovalAnswer,
    SessionDispatch,
    SessionHistory,
    SessionList,
    SessionOpen,
    SessionStop,
    ToolList,
)
from operant.sdk import Text
from operant.sdk.testing.server import ScriptedServer
from tests.journey.house import ended, say, system


def spawn(*tasks: str, **more: Any) -> dict[str, Any]:
    """Call the tool as a model does that has found it by searching."""
    return {"name": "use_tool", "arguments": {"name": "spawn_agent", "arguments": {"tasks": list(tasks), **more}}}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


SCRIPT: dict[str, Any] = {
    "two": [{"calls": [spawn("@say first", "@say second")]}, {"text": "Both are done."}],
    "say": [{"text": "I did {1}.", "delay_ms": 150}],
    "six": [{"calls": [spawn(*[f"@say {number}" for number in range(6)])]}, {"text": "All done."}],
    "hangs": [{"calls": [spawn("@never", "@never")]}, {"text": "Not reached."}],
    "never": [{"hang": True}],
    "both": [{"calls": [spawn("@never", wait=False), spawn("@never")]}, {"text": "Not reached."}],
    "deep": [{"calls": [spawn("@deeper")]}, {"text": "Up."}],
    "deeper": [{"calls": [spawn("@deepest")]}, {"text": "Middle."}],
    "deepest": [{"calls": [spawn("@say no")]}, {"text": "Bottom."}],
    "narrow": [{"calls": [spawn("@writes", tools=["read_file", "use_tool"])]}, {"text": "Narrow."}],
    "writes": [
        {"calls": [call("write_file", path="out.txt", content="made")]},
        {"calls": [call("use_tool", name="write_file", arguments={"path": "out.txt", "content": "made"})]},
        {"text": "Tried."},
    ],
    "files": [{"calls": [spawn("@writes")]}, {"text": "Files."}],
    "asks": [{"calls": [spawn("@shell")]}, {"text": "Asked."}],
    "shell": [{"calls": [call("shell", command="echo hello")]}, {"text": "Ran."}],
    "helped": [{"calls": [call("spawn_agent", tasks=["@say it"], helper="critic")]}, {"text": "Helped."}],
    "sly": [
        {"calls": [spawn("@say it", helper="worker/worker"), spawn("@say it", tools=["a)/worker(b"])]},
        {"text": "Caught."},
    ],
    "nobody": [{"calls": [spawn("@say it", helper="nobody")]}, {"text": "Alone."}],
    "off": [
        {"calls": [spawn("@say later", wait=False)]},
        {"text": "They are at it.", "delay_ms": 400},
        {"text": "Seen."},
    ],
    "slowly": [{"calls": [spawn("@waits", wait=False)]}, {"text": "Started."}],
    "waits": [{"text": "Finally.", "delay_ms": 500}],
}
ASKED = "approval.asked"
ALLOWED: dict[str, object] = {"agents": {"operant": {"approval": {"*": "allow"}}}}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@pytest.fixture
async def made(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[System]:
    async with system(tmp_path / "home", server, ALLOWED) as running:
        yield running


async def children(made: System, parent: str = "s") -> list[SessionInfo]:
    found = await made.kernel.call(OWNER, SessionList(limit=100))
    return sorted((one for one in found if one.parent == parent), key=lambda one: one.key)


def results(events: list[Event]) -> list[str]:
    return [text_of(event.body.parts) for event in events if isinstance(event.body, ToolEnded)]


def told(events: list[Event]) -> list[str]:
    return [text_of(event.body.parts) for event in events if isinstance(event.body, MessageQueued)]


async def until(made: System, session: str, kind: type) -> list[Event]:
    async with asyncio.timeout(20):
        while True:
            events = list(await made.kernel.store.events(session))
            if any(isinstance(event.body, kind) for event in events):
                return events
            await asyncio.sleep(0)


async def child_at_work(made: System, parent: str = "s", count: int = 1) -> list[SessionInfo]:
    async with asyncio.timeout(20):
        while True:
            found = [one for one in await children(made, parent) if one.state == "open"]
            if len(found) >= count:
                return found
            await asyncio.sleep(0)


async def test_tasks_of_one_call_run_side_by_side_in_sessions_of_their_own(
    made: System, server: ScriptedServer
) -> None:
    await say(made, "@two")
    events = await ended(made)
    (result,) = results(events)
    assert "I did first." in result
    assert "I did second." in result
    assert told(events) == ["Both are done."]
    first, second = await children(made)
    assert first.agent == second.agent == "operant/worker"
    assert first.title == "@say first"
    spans = []
    for one in (first, second):
        history = await made.kernel.call(OWNER, SessionHistory(session=one.key))
        spans.append((history[0].at, history[-1].at))
        received = next(event.body for event in history if isinstance(event.body, MessageReceived))
        assert "You are a sub-agent" in received.ambient
        assert received.author == "owner"
    assert max(begun for begun, _ in spans) < min(over for _, over in spans)


async def test_no_more_than_some_at_once(tmp_path: Path, server: ScriptedServer) -> None:
    more = {**ALLOWED, "subagents": {"at_once": 2, "per_turn": 6}}
    async with system(tmp_path / "home", server, more) as made:
        await say(made, "@six")
        await ended(made)
        spans: list[tuple[int, int]] = []
        for one in await children(made):
            history = await made.kernel.call(OWNER, SessionHistory(session=one.key))
            spans.append((history[0].at, history[-1].at))
        assert len(spans) == 6
        assert max(sum(begun <= at < over for begun, over in spans) for at, _ in spans) == 2
        await say(made, "@six")
        assert "All done." in told(await ended(made, 2))[-1]


async def test_a_turn_has_only_so_many(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server, {**ALLOWED, "subagents": {"per_turn": 5}}) as made:
        await say(made, "@six")
        (result,) = results(await ended(made))
        assert "A turn may have 5 sub-agents" in result
        assert await children(made) == []


async def test_the_third_generation_is_refused_in_words(made: System) -> None:
    await say(made, "@deep")
    await ended(made)
    (child,) = await children(made)
    (grandchild,) = await children(made, child.key)
    assert grandchild.agent == "operant/worker/worker"
    (result,) = results(list(await made.kernel.store.events(grandchild.key)))
    assert "Agents may call agents 2 deep, and no deeper." in result
    assert await children(made, grandchild.key) == []


async def test_a_stop_of_the_parent_stops_all_below_within_a_second(made: System) -> None:
    await say(made, "@hangs")
    working = await child_at_work(made, count=2)
    began = time.monotonic()
    await made.kernel.call(OWNER, SessionStop(session="s"))
    for one in working:
        last = (await until(made, one.key, TurnEnded))[-1].body
        assert isinstance(last, TurnEnded)
        assert last.reason == "stopped"
    assert time.monotonic() - began < 1.0
    await say(made, "@two")
    assert told(await ended(made, 2)) == ["Both are done."]


async def test_a_child_is_held_to_the_tools_that_it_was_left(made: System, tmp_path: Path) -> None:
    await say(made, "@narrow")
    await ended(made)
    (child,) = await children(made)
    assert child.agent == "operant/worker(read_file,use_tool)"
    direct, through = results(list(await made.kernel.store.events(child.key)))
    assert "no tool 'write_file'" in direct
    assert "no tool 'write_file'" in through
    assert not list((tmp_path / "home").rglob("out.txt"))


async def test_a_child_has_no_more_rights_than_its_parent(tmp_path: Path, server: ScriptedServer) -> None:
    rules = {"permissions": {"tools": ["spawn_agent", "use_tool", "tool_search", "read_*"]}, "approval": {"*": "allow"}}
    async with system(tmp_path / "home", server, {"agents": {"operant": rules}}) as made:
        helpers = tmp_path / "home" / "agents" / "operant" / "helpers"
        helpers.mkdir(parents=True)
        (helpers / "critic.md").write_text(
            "---\ntools: ['*']\ndescription: Says what is wrong.\n---\nYou are a critic.\n"
        )
        names = {spec.name for spec in await made.kernel.call(OWNER, ToolList(agent="operant/critic"))}
        assert "read_file" in names
        assert not names & {"shell", "write_file", "edit_file"}
        narrowed = await made.kernel.call(OWNER, ToolList(agent="operant/critic(shell,read_file)/worker(*)"))
        assert {spec.name for spec in narrowed} == {"read_file"}


async def test_files_that_a_child_makes_are_in_the_parents_workspace(made: System, tmp_path: Path) -> None:
    await say(made, "@files")
    await ended(made)
    assert (tmp_path / "home/agents/operant/workspace/out.txt").read_text() == "made"


async def test_a_childs_question_reaches_the_person_of_the_parent(tmp_path: Path, server: ScriptedServer) -> None:
    async with system(tmp_path / "home", server) as made:
        await say(made, "@asks")
        (child,) = await child_at_work(made)
        asked = next(
            event.body for event in await until(made, child.key, ApprovalAsked) if isinstance(event.body, ApprovalAsked)
        )
        events = await until(made, "s", Note)
        note = next(event.body for event in events if isinstance(event.body, Note) and event.body.kind == ASKED)
        assert note.data["approval_id"] == asked.approval_id
        assert "operant/worker" in note.text
        await made.kernel.call(OWNER, ApprovalAnswer(approval_id=asked.approval_id, answer="deny", reason="no"))
        assert told(await ended(made)) == ["Asked."]


async def test_a_named_helper_has_its_own_prompt_and_is_told_of(
    made: System, tmp_path: Path, server: ScriptedServer
) -> None:
    helpers = tmp_path / "home" / "agents" / "operant" / "helpers"
    helpers.mkdir()
    (helpers / "critic.md").write_text(
        "---\ndescription: Says what is wrong.\ntools: [read_file]\n---\nYou are a critic.\n"
    )
    made.agents.changed("operant")
    await say(made, "@helped")
    assert told(await ended(made)) == ["Helped."]
    offered = {one["function"]["name"]: one["function"] for one in server.requests[0].body["tools"]}
    assert "critic: Says what is wrong." in offered["spawn_agent"]["description"]
    child = next(one for one in server.requests if "You are a critic." in str(one.body["messages"][0]))
    assert [one["function"]["name"] for one in child.body["tools"]] == ["read_file"]
    (info,) = await children(made)
    assert info.agent == "operant/critic"


async def test_a_broken_helper_keeps_its_last_version_and_is_reported(made: System, tmp_path: Path) -> None:
    helpers = tmp_path / "home" / "agents" / "operant" / "helpers"
    helpers.mkdir()
    (helpers / "critic.md").write_text("---\ntools: [read_file]\n---\nFirst.\n")
    assert "First." in made.agents.get("operant/critic").prompt
    (helpers / "critic.md").write_text("---\ntool: [read_file]\n---\nSecond, and longer.\n")
    assert "First." in made.agents.get("operant/critic").prompt
    (problem,) = [one for one in made.problems() if "critic" in one]
    assert problem.startswith("agents/operant/helpers: critic.md:")
    assert "tools" in problem
    (helpers / "critic.md").unlink()
    with pytest.raises(NotFound, match="no helper 'critic'"):
        made.agents.get("operant/critic")
    assert not [one for one in made.problems() if "critic" in one]


async def test_an_unknown_helper_is_an_answer_that_names_those_there_are(made: System) -> None:
    await say(made, "@nobody")
    (result,) = results(await ended(made))
    assert "no helper 'nobody'" in result
    assert "worker" in result


async def messages_of(seen: AsyncGenerator[Event | Delta, None], count: int) -> AsyncIterator[MessageReceived]:
    """Yield the first messages that a session receives."""
    async with aclosing(seen):
        async for one in seen:
            if isinstance(one, Event) and isinstance(one.body, MessageReceived):
                yield one.body
                count -= 1
                if not count:
                    return


async def test_names_that_are_more_than_names_are_refused(made: System) -> None:
    await say(made, "@sly")
    assert ["is no name of a helper or a tool" in one for one in results(await ended(made))] == [True, True]
    assert await children(made) == []


async def test_without_waiting_the_result_comes_as_a_message(made: System) -> None:
    await say(made, "@off")
    async with asyncio.timeout(20):
        seen = made.kernel.follow("s", 0)
        arrived = [one async for one in messages_of(seen, 2)]
    assert "I did later." in text_of(arrived[1].parts)
    await say(made, "@slowly", session="t")
    events = await ended(made, 2, session="t")
    messages = [event.body for event in events if isinstance(event.body, MessageReceived)]
    assert ["Finally." in text_of(one.parts) for one in messages] == [False, True]


async def test_the_tokens_of_a_turn_are_those_of_its_children_too(tmp_path: Path, server: ScriptedServer) -> None:
    usage = {"prompt_tokens": 30_000, "completion_tokens": 10_000}
    script = {
        "dear": [{"calls": [spawn("@costs", "@costs")]}, {"text": "Too dear."}],
        "costs": [{"text": "That was dear.", "usage": usage}],
    }
    costly = ScriptedServer(script)
    more: dict[str, object] = {"agents": {"operant": {"approval": {"*": "allow"}, "limits": {"turn_tokens": 75_000}}}}
    async with costly.serving(), system(tmp_path / "home", costly, more, window=200_000) as made:
        await say(made, "@dear")
        last = (await ended(made))[-1].body
        assert isinstance(last, TurnEnded)
        assert last.reason == "budget"
        assert "and its sub-agents" in last.sentence


async def test_what_a_child_read_from_outside_comes_back_marked_so(made: System) -> None:
    parts = (Text(text="@two"),)
    await made.kernel.call(OWNER, SessionDispatch(session="s", parts=parts, labels=("outside",)))
    events = await ended(made)
    for one in await children(made):
        history = await made.kernel.call(OWNER, SessionHistory(session=one.key))
        received = next(event.body for event in history if isinstance(event.body, MessageReceived))
        assert received.labels == ("outside",)
    (result,) = [event.body for event in events if isinstance(event.body, ToolEnded)]
    assert result.labels == ("outside",)
    assert "untrusted" in text_of(result.parts) or "seal" in text_of(result.parts)


async def test_the_budget_of_a_turn_pays_for_its_sub_agents(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 3_000, "completion_tokens": 1_000}
    script = {
        "dear": [{"calls": [spawn("@costs", "@costs")], "usage": usage}, {"text": "Too dear.", "usage": usage}],
        "costs": [{"text": "That was dear.", "usage": usage}],
        "alone": [{"text": "Cheap.", "usage": usage}],
    }
    costly = ScriptedServer(script)
    more: dict[str, object] = {**ALLOWED, "defaults": {"models": ["scripted/one"], "max_output_tokens": 1_000}}
    more["budgets"] = {"turn": {"tokens": 13_500}}
    async with costly.serving(), system(tmp_path / "home", costly, more, window=200_000) as made:
        await say(made, "@dear")
        last = (await ended(made))[-1].body
        assert isinstance(last, TurnEnded)
        assert last.reason == "budget"
        assert [(await made.kernel.store.events(one.key))[-1].type for one in await children(made)] == [
            "turn.ended"
        ] * 2
        await say(made, "@alone")
        assert told(await ended(made, 2))[-1] == "Cheap."
        for key in ("copy-1", "copy-2", "copy-3"):  # a copy has a parent as well, and pays for itself
            await made.kernel.call(OWNER, SessionOpen(session=key, parent="s"))
            await say(made, "@alone", session=key)
            assert told(await ended(made, session=key)) == ["Cheap."]


async def test_a_stop_takes_those_along_that_nobody_waits_for(made: System) -> None:
    await say(made, "@both")
    await child_at_work(made, count=2)
    await made.kernel.call(OWNER, SessionStop(session="s"))
    for one in await children(made):
        last = (await until(made, one.key, TurnEnded))[-1].body
        assert isinstance(last, TurnEnded)
        assert last.reason == "stopped"
    events = await ended(made)
    assert sum(isinstance(event.body, MessageReceived) for event in events) == 1
