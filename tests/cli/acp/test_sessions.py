"""What an editor does with sessions over the Agent Client Protocol: stop, choose, list, leave and come back."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import acp
import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.cli.acp.editor import PATIENCE_S, editing, environment, prepare
from tests.cli.process import Operant

WRITE = {"name": "write_file", "arguments": {"path": "notes.txt", "content": "one\n"}}
SCRIPT = {
    "hello": [{"text": "Good morning {1}.", "reasoning": "They greet me."}],
    "files": [{"text": "I write.", "calls": [WRITE]}, {"text": "It is done."}],
    "shell": [{"calls": [{"name": "shell", "arguments": {"command": "echo from the shell"}}]}, {"text": "It ran."}],
    "helped": [{"calls": [{"name": "spawn_agent", "arguments": {"tasks": ["@shell"]}}]}, {"text": "Asked."}],
    "stall": [{"text": "I begin and then", "chunks": 4, "stall_after": 3}],
}
LOUD = """
import os
from contextlib import asynccontextmanager

from operant.sdk import Extension

print("loud at import")


@asynccontextmanager
async def setup(host, settings):
    print("loud at setup", flush=True)
    os.write(1, b"loud below Python\\n")
    yield


extension = Extension(name="loud", setup=":setup")
"""


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@pytest.fixture
def home(tmp_path: Path, server: ScriptedServer) -> Path:
    place = tmp_path / "home"
    prepare(place, server.url, write_file="allow")
    return place


async def test_cancel_ends_a_prompt_in_the_middle_of_an_answer(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen, asyncio.TaskGroup() as group:
        session = await seen.begin(tmp_path)
        asking = group.create_task(seen.ask(session, "@stall"))
        await seen.editor.until(lambda: bool(seen.editor.text()))
        await seen.agent.cancel(session_id=session)
        assert (await asking).stop_reason == "cancelled"


async def test_cancel_takes_a_question_back(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen, asyncio.TaskGroup() as group:
        session = await seen.begin(tmp_path)
        asking = group.create_task(seen.ask(session, "@shell"))
        await seen.editor.until(lambda: bool(seen.editor.asked))
        await seen.agent.cancel(session_id=session)
        assert (await asking).stop_reason == "cancelled"
        assert seen.editor.of("tool_call_update")[-1].status == "failed"


async def test_a_session_is_loaded_after_a_kill(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        await seen.ask(session, "@files please")
        seen.process.kill()
        await seen.process.wait()
    async with editing(home) as seen:
        loaded = await seen.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert seen.editor.text(kind="user_message_chunk") == "@files please"
        assert seen.editor.text() == "I write.It is done."
        (call,) = seen.editor.of("tool_call")
        assert call.content[0].new_text == "one\n"
        assert seen.editor.of("tool_call_update")[-1].status == "completed"
        assert loaded.modes.current_mode_id == "operant"
        assert (await seen.ask(session, "@hello")).stop_reason == "end_turn"
        assert not [one for one in seen.editor.of("user_message_chunk") if "hello" in one.content.text]


async def test_a_question_that_a_kill_left_is_asked_again(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(_failing(seen.ask(session, "@shell")))
            await seen.editor.until(lambda: bool(seen.editor.asked))
            seen.process.kill()
            await asking
    async with editing(home, answers=["allow_once"]) as seen:
        await seen.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        await seen.editor.until(lambda: seen.editor.text().endswith("It ran."))
        assert len(seen.editor.asked) == 1


@pytest.mark.parametrize(("answer", "status"), [("allow_once", "completed"), ("reject_once", "failed")])
async def test_a_sub_agent_asks_here_too(home: Path, tmp_path: Path, answer: str, status: str) -> None:
    async with editing(home, answers=[answer]) as seen:
        session = await seen.begin(tmp_path)
        await seen.ask(session, "@helped")
        (asked,) = seen.editor.asked
        assert "echo from the shell" in asked.content[0].content.text
        ended = [one for one in seen.editor.of("tool_call_update") if one.tool_call_id == asked.tool_call_id]
        assert ended[-1].status == status
        assert seen.editor.text() == "Asked."


async def test_what_a_sub_agent_asked_is_asked_again_after_a_kill(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(_failing(seen.ask(session, "@helped")))
            await seen.editor.until(lambda: bool(seen.editor.asked))
            seen.process.kill()
            await asking
    async with editing(home, answers=["allow_once"]) as seen:
        await seen.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        await seen.editor.until(lambda: seen.editor.text().endswith("Asked."))
        assert len(seen.editor.asked) == 1


async def test_two_sessions_run_side_by_side(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen, asyncio.TaskGroup() as group:
        stalled, quick = await seen.begin(tmp_path), await seen.begin(tmp_path)
        asking = group.create_task(seen.ask(stalled, "@stall"))
        await seen.editor.until(lambda: bool(seen.editor.text(stalled)))
        await seen.ask(quick, "@hello Ada")
        assert seen.editor.text(quick) == "Good morning Ada."
        assert "morning" not in seen.editor.text(stalled)
        await seen.agent.cancel(session_id=stalled)
        assert (await asking).stop_reason == "cancelled"


async def test_two_editors_share_a_daemon_and_its_sessions(home: Path, tmp_path: Path) -> None:
    with Operant(home).serving():
        async with editing(home) as one, editing(home) as other:
            session = await one.begin(tmp_path)
            await one.ask(session, "@hello Ada")
            listed = (await other.agent.list_sessions(cwd=str(tmp_path))).sessions
            assert [(at.session_id, at.title, at.cwd) for at in listed] == [(session, "@hello Ada", str(tmp_path))]
            assert not (await other.agent.list_sessions(cwd="/elsewhere")).sessions
            await other.agent.resume_session(cwd=str(tmp_path), session_id=session)
            assert not other.editor.updates
            await one.ask(session, "@hello Bob")
            await other.editor.until(lambda: "Good morning Bob." in other.editor.text())
            assert other.editor.text(kind="user_message_chunk") == "@hello Bob"


async def test_an_answer_given_elsewhere_counts(home: Path, tmp_path: Path) -> None:
    operant = Operant(home)
    with operant.serving():
        async with editing(home) as seen, asyncio.TaskGroup() as group:
            session = await seen.begin(tmp_path)
            asking = group.create_task(seen.ask(session, "@shell"))
            await seen.editor.until(lambda: bool(seen.editor.asked))
            waiting = (await asyncio.to_thread(operant, "approval", "list", "--json")).json()
            await asyncio.to_thread(operant, "approval", "allow", waiting[0]["approval_id"])
            assert (await asking).stop_reason == "end_turn"
            assert seen.editor.text() == "It ran."


async def test_agents_and_models_are_chosen(home: Path, tmp_path: Path, server: ScriptedServer) -> None:
    Operant(home)("agent", "add", "helper")
    async with editing(home) as seen:
        begun = await seen.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        session = begun.session_id
        assert {mode.id for mode in begun.modes.available_modes} == {"operant", "helper"}
        assert [(one.id, one.current_value) for one in begun.config_options] == [
            ("agent", "operant"),
            ("model", "scripted/one"),
        ]
        await seen.agent.set_session_mode(session_id=session, mode_id="helper")
        changed = await seen.agent.set_config_option(config_id="model", session_id=session, value="scripted/two")
        assert [one.current_value for one in changed.config_options] == ["helper", "scripted/two"]
        await seen.ask(session, "@hello")
        assert server.requests[-1].body["model"] == "two"
        with pytest.raises(acp.RequestError, match="This session is with helper"):
            await seen.agent.set_session_mode(session_id=session, mode_id="operant")
        with pytest.raises(acp.RequestError, match="no option"):
            await seen.agent.set_config_option(config_id="mood", session_id=session, value="good")
        copy = await seen.agent.fork_session(session_id=session, cwd=str(tmp_path))
        assert copy.session_id != session
        await seen.agent.close_session(session_id=session)
        with pytest.raises(acp.RequestError, match="no session"):
            await seen.ask(session, "@hello")


async def test_a_message_meanwhile_steers_the_same_turn(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen, asyncio.TaskGroup() as group:
        session = await seen.begin(tmp_path)
        first = group.create_task(seen.ask(session, "@shell"))
        await seen.editor.until(lambda: bool(seen.editor.asked))
        second = group.create_task(seen.ask(session, "and be brief"))
        waiting = (await asyncio.to_thread(Operant(home), "approval", "list", "--json")).json()
        await asyncio.to_thread(Operant(home), "approval", "allow", waiting[0]["approval_id"])
        assert {(await first).stop_reason, (await second).stop_reason} == {"end_turn"}


async def test_a_turn_that_may_go_no_further_says_why_it_ended(home: Path, tmp_path: Path) -> None:
    with (home / "operant.yaml").open("a") as settings:
        settings.write("agents: {operant: {max_steps: 1}}\n")
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        assert (await seen.ask(session, "@files")).stop_reason == "max_turn_requests"


async def test_the_death_of_the_daemon_ends_nothing(home: Path, tmp_path: Path) -> None:
    with Operant(home).serving() as daemon:
        async with editing(home) as seen, asyncio.TaskGroup() as group:
            session = await seen.begin(tmp_path)
            asking = group.create_task(seen.ask(session, "@shell"))
            await seen.editor.until(lambda: bool(seen.editor.asked))
            daemon.kill()
            await asyncio.to_thread(daemon.wait)
            waiting = (await asyncio.to_thread(Operant(home), "approval", "list", "--json")).json()
            await asyncio.to_thread(Operant(home), "approval", "allow", waiting[0]["approval_id"])
            assert (await asking).stop_reason == "end_turn"
            assert seen.editor.text().endswith("It ran.")


async def test_a_signal_ends_it_well(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        await seen.ask(session, "@hello")
        seen.process.terminate()
        async with asyncio.timeout(PATIENCE_S):
            assert await seen.process.wait() == 0


async def test_an_answer_that_is_none_allows_nothing(home: Path, tmp_path: Path) -> None:
    async with editing(home, answers=["nonsense", "nonsense"]) as seen, asyncio.TaskGroup() as group:
        session = await seen.begin(tmp_path)
        asking = group.create_task(seen.ask(session, "@shell"))
        await seen.editor.until(lambda: bool(seen.editor.asked))
        waiting = (await asyncio.to_thread(Operant(home), "approval", "list", "--json")).json()
        await asyncio.to_thread(Operant(home), "approval", "deny", waiting[0]["approval_id"])
        assert (await asking).stop_reason == "end_turn"
        assert seen.editor.of("tool_call_update")[-1].status == "failed"


async def test_what_cannot_be_done_is_said(home: Path, tmp_path: Path) -> None:
    async with editing(home, "--agent", "operant") as seen:
        session = await seen.begin(tmp_path)
        for words, blocks in (
            ("empty", [acp.text_block(" ")]),
            ("Sound", [acp.audio_block("AAAA", "audio/wav")]),
            ("base64", [acp.image_block("?", "image/png")]),
            ("larger than 5 MB", [acp.image_block("A" * (8 * 2**20), "image/png")]),
        ):
            with pytest.raises(acp.RequestError, match=words):
                await seen.ask(session, *blocks)
        for call in (
            seen.agent.new_session(cwd="here", mcp_servers=[]),
            seen.agent.load_session(cwd="/", session_id="nobody", mcp_servers=[]),
            seen.agent.list_sessions(cursor="yesterday"),
            seen.agent.authenticate(method_id="password"),
            seen.agent.ext_method("unknown", {}),
        ):
            with pytest.raises(acp.RequestError):
                await call
        assert (await seen.ask(session, "@hello")).stop_reason == "end_turn"


async def test_nothing_but_the_protocol_reaches_standard_output(home: Path, tmp_path: Path) -> None:
    Operant(home)("init")
    (home / "extensions" / "loud.py").write_text(LOUD)
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        await seen.ask(session, "@hello")
    assert seen.lines
    assert not any(b"loud" in line for line in seen.lines)


async def test_broken_lines_do_not_end_it(home: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "operant", "acp",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=environment(home),
    )  # fmt: skip
    hello = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": 1}}
    out, _ = await process.communicate(b"{not json\n\n" + json.dumps(hello).encode() + b"\n")
    answers = [json.loads(line) for line in out.splitlines()]
    assert answers[-1]["id"] == 7
    assert answers[-1]["result"]["protocolVersion"] == 1
    assert process.returncode == 0


def test_a_terminal_is_told_who_starts_it(home: Path) -> None:
    with Operant(home).terminal("acp") as terminal:
        terminal.wait("An editor starts this command")
        assert terminal.end() == 2


def test_without_the_sdk_it_says_what_to_install(home: Path, tmp_path: Path) -> None:
    (tmp_path / "acp.py").write_text("raise ImportError('not here')\n")
    ran = Operant(home)("acp", stdin="\n", PYTHONPATH=f"{tmp_path}{os.pathsep}src")
    assert ran.code == 1
    assert "operant[acp]" in ran.err
    assert "Traceback" not in ran.err


async def _failing(asking: object) -> None:
    with pytest.raises((ConnectionError, acp.RequestError)):
        await asking  # type: ignore[misc]
