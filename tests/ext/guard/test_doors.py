"""The guard's handlers as the kernel calls them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from operant.ext.guard import extension
from operant.ext.guard.doors import GuardSettings, setup
from operant.sdk import (
    APPEND_BEFORE,
    MESSAGE_BEFORE,
    TOOL_AFTER,
    TOOL_BEFORE,
    TOOL_ENV,
    Agent,
    AppendInput,
    AppendOutput,
    Ask,
    BlobRef,
    EnvInput,
    EnvOutput,
    MessageInput,
    MessageOutput,
    Reject,
    Text,
    ToolAfterInput,
    ToolAfterOutput,
    ToolInput,
    ToolOutput,
    ToolResult,
    ToolSpec,
)

SECRET = "hunter22-hunter22"
SHELL = ToolSpec(name="shell", description="", schema={"properties": {"command": {"type": "string"}}})


@pytest.fixture
async def host(policy_host: Any) -> AsyncIterator[Any]:
    async with setup(policy_host, GuardSettings(redact=(SECRET,))):
        yield policy_host


def agent(**approval: Any) -> Agent:
    return Agent(name="operant", approval=approval)


async def ruling(host: Any, who: Agent, arguments: dict[str, Any], spec: ToolSpec = SHELL) -> Any:
    about = ToolInput(session="s", agent=who, call_id="c", name=spec.name, spec=spec)
    return await host.run(TOOL_BEFORE, about, ToolOutput(arguments=arguments))


async def test_a_call_is_allowed_asked_about_or_refused(host: Any) -> None:
    allowed = await ruling(host, agent(shell="allow"), {"command": "ls"})
    asked = await ruling(host, agent(), {"command": "ls -l"})
    refused = await ruling(host, agent(shell="deny"), {"command": "ls"})

    assert allowed == ToolOutput(arguments={"command": "ls"})
    assert asked == Ask(question="May operant use shell? ls -l")
    assert refused == Reject(reason="shell is denied to operant: the approval rule 'shell' says so.")


async def test_a_mark_is_not_written_back_in_place_of_the_value(host: Any) -> None:
    read = ToolSpec(name="search", description="", schema={}, effect="read")

    refused = await ruling(host, agent(shell="allow"), {"command": "x", "more": ["a", {"b": "k=[secret]"}]})
    searched = await ruling(host, agent(), {"query": "[secret]"}, read)

    assert isinstance(refused, Reject) and "[secret] stands for a value" in refused.reason
    assert isinstance(searched, ToolOutput)


async def test_events_results_and_messages_lose_their_secrets(host: Any) -> None:
    who = agent()
    body = json.dumps({"parts": [{"type": "text", "text": f"it is\n{SECRET}"}]})
    result = ToolResult(parts=(Text(text=f"k={SECRET}"), BlobRef(digest="d", size=1)))

    appended = await host.run(APPEND_BEFORE, AppendInput(session="s", type="note"), AppendOutput(body=body))
    ended = await host.run(
        TOOL_AFTER,
        ToolAfterInput(session="s", agent=who, call_id="c", name="shell", arguments={}),
        ToolAfterOutput(result=result),
    )
    said = await host.run(
        MESSAGE_BEFORE,
        MessageInput(session="s", agent=who, channel="local", chat="c"),
        MessageOutput(parts=(Text(text=SECRET),)),
    )

    assert json.loads(appended.body) == {"parts": [{"type": "text", "text": "it is\n[secret]"}]}
    assert ended.result.parts == (Text(text="k=[secret]"), BlobRef(digest="d", size=1))
    assert said.parts == (Text(text="[secret]"),)


async def test_what_holds_no_secret_is_the_same_object(host: Any) -> None:
    output = AppendOutput(body='{"text":"nothing"}')
    message = MessageOutput(parts=(Text(text="hello"),))
    about = MessageInput(session="s", agent=agent(), channel="local", chat="c")

    assert await host.run(APPEND_BEFORE, AppendInput(session="s", type="note"), output) is output
    assert await host.run(MESSAGE_BEFORE, about, message) is message


async def test_calls_on_record_stay_valid_json(host: Any) -> None:
    call = {"type": "tool_call", "id": "1", "name": "shell", "arguments": json.dumps({"command": f"echo {SECRET}"})}

    appended = await host.run(
        APPEND_BEFORE, AppendInput(session="s", type="model.replied"), AppendOutput(body=json.dumps({"parts": [call]}))
    )

    arguments = json.loads(appended.body)["parts"][0]["arguments"]
    assert json.loads(arguments) == {"command": "echo [secret]"}


async def test_a_process_is_started_without_keys(host: Any) -> None:
    about = EnvInput(session="s", agent=agent(), name="shell")

    changed = await host.run(TOOL_ENV, about, EnvOutput(env={"PATH": "/bin", "A_TOKEN": "t", "B": SECRET}))

    assert changed == EnvOutput(env={"PATH": "/bin"})


def test_the_folder_declares_the_feature() -> None:
    assert (extension.name, extension.setup) == ("guard", "operant.ext.guard.doors:setup")
