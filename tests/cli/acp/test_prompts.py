"""What an editor sees of a conversation over the Agent Client Protocol."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import acp
import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.cli.acp.editor import editing, prepare

WRITE = {"name": "write_file", "arguments": {"path": "notes.txt", "content": "one\ntwo\n"}}
EDIT = {"name": "edit_file", "arguments": {"path": "notes.txt", "old": "two", "new": "three"}}
SCRIPT = {
    "hello": [{"text": "Good morning to you.", "chunks": 5, "reasoning": "They greet me."}],
    "files": [{"text": "I write.", "calls": [WRITE]}, {"calls": [EDIT]}, {"text": "Both are done."}],
    "shell": [{"calls": [{"name": "shell", "arguments": {"command": "echo from the shell"}}]}, {"text": "It ran."}],
    "stall": [{"text": "I begin and then", "chunks": 4, "stall_after": 2}],
    "broken": [{"status": 400, "body": "no"}],
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@pytest.fixture
def home(tmp_path: Path, server: ScriptedServer) -> Path:
    place = tmp_path / "home"
    prepare(place, server.url, write_file="allow", edit_file="allow")
    return place


async def test_an_answer_streams_with_its_thoughts(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        answered = await seen.ask(session, "@hello")
        assert answered.stop_reason == "end_turn"
        assert answered.usage.total_tokens > 0
        assert seen.editor.text() == "Good morning to you."
        assert len(seen.editor.of("agent_message_chunk")) > 1
        assert seen.editor.text(kind="agent_thought_chunk") == "They greet me."
        assert not seen.editor.of("user_message_chunk")


async def test_changes_of_files_are_shown_as_diffs(home: Path, tmp_path: Path) -> None:
    file = str(home / "agents" / "operant" / "workspace" / "notes.txt")
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        await seen.ask(session, "@files")
        begun = seen.editor.of("tool_call")
        assert [one.kind for one in begun] == ["edit", "edit"]
        assert [one.locations[0].path for one in begun] == [file, file]
        assert begun[1].content[0].old_text == "two"
        ended = [one for one in seen.editor.of("tool_call_update") if one.status == "completed"]
        assert [one.tool_call_id for one in ended] == [one.tool_call_id for one in begun]
        assert ended[1].content[0].new_text == "three"
        assert ended[1].content[0].path == file
        assert Path(file).read_text() == "one\nthree\n"
        assert seen.editor.text() == "I write.Both are done."


@pytest.mark.parametrize(
    ("answer", "status"), [("allow_once", "completed"), ("allow_always", "completed"), ("reject_once", "failed")]
)
async def test_a_person_decides_about_a_call(home: Path, tmp_path: Path, answer: str, status: str) -> None:
    async with editing(home, answers=[answer]) as seen:
        session = await seen.begin(tmp_path)
        await seen.ask(session, "@shell")
        (asked,) = seen.editor.asked
        assert "echo from the shell" in asked.content[0].content.text
        assert asked.raw_input["command"] == "echo from the shell"
        assert {one.kind for one in seen.editor.options} == {"allow_once", "allow_always", "reject_once"}
        (begun,) = seen.editor.of("tool_call")
        assert (begun.tool_call_id, begun.kind, begun.status) == (asked.tool_call_id, "execute", "pending")
        assert seen.editor.of("tool_call_update")[-1].status == status
        if answer == "allow_always":
            await seen.ask(session, "@shell")
            assert len(seen.editor.asked) == 1


async def test_a_dialog_that_is_closed_is_no_yes(home: Path, tmp_path: Path) -> None:
    async with editing(home, answers=["cancelled"]) as seen:
        session = await seen.begin(tmp_path)
        await seen.ask(session, "@shell")
        ended = seen.editor.of("tool_call_update")[-1]
        assert (ended.status, ended.raw_output["outcome"]) == ("failed", "denied")


async def test_what_an_editor_attaches_reaches_the_model(home: Path, tmp_path: Path, server: ScriptedServer) -> None:
    dot = base64.b64encode(
        bytes.fromhex(
            "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
            "a5f645400000000049454e44ae426082"
        )
    ).decode()
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        await seen.ask(
            session,
            "@hello look at these",
            acp.image_block(dot, "image/png"),
            acp.resource_block(acp.embedded_text_resource("file:///src/a%20b.py#L3", "print(1)")),
            acp.resource_link_block("c.py", "file:///src/c.py"),
        )
    sent = json.dumps(server.requests[0].body["messages"])
    assert '/src/a b.py#L3\\"' in json.loads(json.dumps(sent)) and "print(1)" in sent
    assert "[c.py](/src/c.py)" in sent
    assert dot in sent


async def test_an_agent_is_told_what_it_can_reach_once(home: Path, tmp_path: Path, server: ScriptedServer) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with editing(home) as seen:
        session = await seen.begin(project)
        await seen.ask(session, "@hello")
        await seen.ask(session, "@hello again")
        inside = await seen.begin(home / "agents" / "operant" / "workspace" / "memory")
        await seen.ask(inside, "@hello")
    shared = tmp_path / "code"
    (shared / "app").mkdir(parents=True)
    with (home / "operant.yaml").open("a") as settings:
        settings.write(f"tools: {{shared: {shared}}}\n")
    async with editing(home) as seen:
        session = await seen.begin(shared / "app")
        await seen.ask(session, "@hello")
    told = [json.dumps(one.body["messages"]) for one in server.requests]
    assert f"open on `{project}`, which is outside of your workspace" in told[0]
    assert told[1].count("outside of your workspace") == 1
    assert "for your file tools that is `memory`" in told[2]
    assert "for your file tools that is `shared/app`" in told[3]


async def test_servers_of_the_editor_are_named_and_not_used(home: Path, tmp_path: Path) -> None:
    server = acp.schema.McpServerStdio(name="notes", command="/bin/false", args=[], env=[])
    async with editing(home) as seen:
        session = await seen.begin(tmp_path, mcp_servers=[server])
        await seen.ask(session, "@hello")
        assert seen.editor.text().startswith("*Not used: the MCP servers of the editor (notes).*")


async def test_a_turn_that_fails_is_an_error_with_a_sentence(home: Path, tmp_path: Path) -> None:
    async with editing(home) as seen:
        session = await seen.begin(tmp_path)
        with pytest.raises(acp.RequestError, match="refused"):
            await seen.ask(session, "@broken")
