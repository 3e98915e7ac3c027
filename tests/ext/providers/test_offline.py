"""The offline model: commands to calls, and honest about what it is."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.ext.providers.offline import Offline
from operant.sdk import Message, ModelRequest, Reply, Text, ToolCall, ToolSpec, text_of

TOOLS = tuple(
    ToolSpec(name=name, description="", schema={})
    for name in ("list_files", "read_file", "write_file", "edit_file", "search_files", "shell")
)


async def answer(text: str, *since: Message) -> Reply:
    messages = (Message(role="user", parts=(Text(text=text),)), *since)
    request = ModelRequest(model="commands", system="", messages=messages, tools=TOOLS)
    parts = [part async for part in Offline().stream(request)]
    assert isinstance(parts[-1], Reply)
    return parts[-1]


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("list files", "list_files", {"path": "."}),
        ("list files in src", "list_files", {"path": "src"}),
        ("read notes.md", "read_file", {"path": "notes.md"}),
        ("write notes.md: buy milk", "write_file", {"path": "notes.md", "content": "buy milk"}),
        ("edit a.txt: old -> new", "edit_file", {"path": "a.txt", "old": "old", "new": "new"}),
        ('run "git status"', "shell", {"command": "git status"}),
        ("run git status", "shell", {"command": "git status"}),
        ('!tool read_file {"path": "x"}', "read_file", {"path": "x"}),
        ("[Fri 2026-11-20 21:34 UTC]\nread notes.md", "read_file", {"path": "notes.md"}),
    ],
)
async def test_a_command_becomes_a_call(text: str, name: str, arguments: dict[str, str]) -> None:
    (call,) = (await answer(text)).parts
    assert isinstance(call, ToolCall)
    assert (call.name, msgspec.json.decode(call.arguments)) == (name, arguments)


async def test_commands_are_done_one_after_the_other_and_summed_up() -> None:
    text = "list files then read a"
    (call,) = (await answer(text)).parts
    assert isinstance(call, ToolCall)
    asked = Message(role="assistant", parts=(call,))
    result = Message(role="tool", parts=(Text(text="a b"),), call_id=call.id, name=call.name)
    (second,) = (await answer(text, asked, result)).parts
    assert isinstance(second, ToolCall)
    assert second.name == "read_file"
    done = await answer(text, asked, result, asked, result)
    assert "1. list_files" in text_of(done.parts)


async def test_it_says_what_it_is_and_what_is_not_there() -> None:
    assert "without intelligence" in text_of((await answer("how are you?")).parts)
    assert "web_fetch" in text_of((await answer("fetch https://example.org")).parts)


@given(st.text(max_size=80))
async def test_any_text_gets_a_whole_answer(text: str) -> None:
    reply = await answer(text)
    assert reply.parts
