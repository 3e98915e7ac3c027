"""OpenAI's own client talks to an agent: chat, responses, streams, pictures, functions of the caller."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest

from operant.sdk.testing.server import ScriptedServer
from operant.sdk.testing.wires.pictures import picture
from tests.journey.gateway import Served, served

SCRIPT: dict[str, Any] = {
    "hello": [{"text": "Good morning.", "chunks": 3}],
    "list": [
        {"text": "Let me look.", "calls": [{"name": "list_files", "arguments": {}}]},
        {"text": "There are a few files."},
    ],
    "weather": [
        {"calls": [{"name": "client_weather", "arguments": {"city": "Rome"}}]},
        {"text": "It is sunny in Rome."},
    ],
    "both": [
        {
            "calls": [
                {"name": "client_weather", "arguments": {"city": "Rome"}},
                {"name": "client_weather", "arguments": {"city": "Oslo"}},
            ]
        },
        {"text": "Sun and snow."},
    ],
    "mixed": [
        {"calls": [{"name": "list_files", "arguments": {}}, {"name": "client_weather", "arguments": {"city": "Rome"}}]},
        {"text": "Files, and sun."},
    ],
    "broken": [{"status": 400}],
}
WEATHER: Any = {
    "name": "weather",
    "description": "Tell the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@pytest.fixture
async def house(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[Served]:
    async with served(tmp_path / "home", server) as made:
        yield made


@pytest.fixture
async def client(house: Served) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{house.url}/v1", api_key=house.token, max_retries=0) as made:
        yield made


async def test_every_agent_is_a_model(client: openai.AsyncOpenAI) -> None:
    models = await client.models.list()
    assert [model.id for model in models.data] == ["operant"]
    assert (await client.models.retrieve("operant")).owned_by == "operant"


async def test_a_completion_has_words_and_usage(client: openai.AsyncOpenAI) -> None:
    made = await client.chat.completions.create(model="operant", messages=[{"role": "user", "content": "@hello"}])
    assert made.choices[0].message.content == "Good morning."
    assert made.choices[0].finish_reason == "stop"
    assert made.usage and made.usage.total_tokens > 0


async def test_what_the_agent_does_itself_is_not_asked_of_the_client(client: openai.AsyncOpenAI) -> None:
    made = await client.chat.completions.create(model="operant", messages=[{"role": "user", "content": "@list"}])
    assert made.choices[0].message.tool_calls is None
    assert made.choices[0].message.content == "Let me look.\n\nThere are a few files."


async def test_a_stream_says_the_same_in_pieces(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="operant",
        messages=[{"role": "user", "content": "@list"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Let me look.\n\nThere are a few files."
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage and chunks[-1].usage.completion_tokens > 0


async def test_a_conversation_that_goes_on_stays_in_its_session(
    client: openai.AsyncOpenAI, house: Served, server: ScriptedServer
) -> None:
    messages: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "@hello"}]
    first = await client.chat.completions.create(model="operant", messages=messages)
    messages += [first.choices[0].message.model_dump(exclude_none=True), {"role": "user", "content": "@list again"}]
    await client.chat.completions.create(model="operant", messages=messages)
    sessions = (await house.get("/api/sessions"))["sessions"]
    assert len(sessions) == 1
    asked = json.dumps(server.requests[-1].body["messages"])
    assert asked.count("Be brief.") == 1
    assert "Good morning." in asked


async def test_a_conversation_from_elsewhere_comes_with_its_history(
    client: openai.AsyncOpenAI, server: ScriptedServer
) -> None:
    messages: Any = [
        {"role": "user", "content": "What is 6 x 7?"},
        {"role": "assistant", "content": "It is 42."},
        {"role": "user", "content": "@hello"},
    ]
    made = await client.chat.completions.create(model="operant", messages=messages)
    assert made.choices[0].message.content == "Good morning."
    roles = [one["role"] for one in server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert server.requests[-1].body["messages"][2]["content"] == "It is 42."


async def test_a_picture_reaches_the_model(client: openai.AsyncOpenAI, server: ScriptedServer) -> None:
    url = "data:image/png;base64," + base64.b64encode(picture("red")).decode()
    content: Any = [{"type": "text", "text": "@hello"}, {"type": "image_url", "image_url": {"url": url}}]
    await client.chat.completions.create(model="operant", messages=[{"role": "user", "content": content}])
    assert url in json.dumps(server.requests[-1].body)


@pytest.mark.parametrize("stream", [False, True])
async def test_functions_of_the_caller_work(client: openai.AsyncOpenAI, stream: bool) -> None:
    messages: Any = [{"role": "user", "content": "@weather"}]
    calls = await _calls(client, messages, stream)
    assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls] == [
        ("weather", {"city": "Rome"})
    ]
    messages += [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "sunny"},
    ]
    made = await client.chat.completions.create(model="operant", messages=messages, tools=_tools())
    assert made.choices[0].message.content == "It is sunny in Rome."


async def test_two_calls_at_once_are_asked_for_at_once(client: openai.AsyncOpenAI) -> None:
    messages: Any = [{"role": "user", "content": "@both"}]
    calls = await _calls(client, messages, False)
    assert [json.loads(call["function"]["arguments"])["city"] for call in calls] == ["Rome", "Oslo"]
    messages.append({"role": "assistant", "content": None, "tool_calls": calls})
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": "fine"} for call in calls]
    made = await client.chat.completions.create(model="operant", messages=messages, tools=_tools())
    assert made.choices[0].message.content == "Sun and snow."


async def test_calls_of_both_kinds_are_kept_apart(client: openai.AsyncOpenAI) -> None:
    messages: Any = [{"role": "user", "content": "@mixed"}]
    calls = await _calls(client, messages, False)
    assert [call["function"]["name"] for call in calls] == ["weather"]
    messages += [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "sunny"},
    ]
    made = await client.chat.completions.create(model="operant", messages=messages, tools=_tools())
    assert made.choices[0].message.content == "Files, and sun."


async def test_a_failing_model_is_an_error_of_the_protocol(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(model="operant", messages=[{"role": "user", "content": "@broken"}])
    assert caught.value.status_code == 502
    assert "message" in caught.value.body  # type: ignore[operator]


async def test_errors_have_the_shape_that_the_client_reads(house: Served) -> None:
    async with openai.AsyncOpenAI(base_url=f"{house.url}/v1", api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError):
            await stranger.models.list()
    async with openai.AsyncOpenAI(base_url=f"{house.url}/v1", api_key=house.token, max_retries=0) as client:
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="nobody", messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="operant", messages=[])


async def test_responses_answer_and_can_be_had_again(client: openai.AsyncOpenAI) -> None:
    made = await client.responses.create(model="operant", input="@hello")
    assert made.output_text == "Good morning."
    assert made.usage and made.usage.total_tokens > 0
    again = await client.responses.retrieve(made.id)
    assert again.output_text == "Good morning."


async def test_previous_response_goes_on_in_the_session(client: openai.AsyncOpenAI, house: Served) -> None:
    first = await client.responses.create(model="operant", input="@hello")
    second = await client.responses.create(model="operant", input="@list", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert len((await house.get("/api/sessions"))["sessions"]) == 1


async def test_a_conversation_is_a_session(client: openai.AsyncOpenAI, house: Served) -> None:
    await client.responses.create(model="operant", input="@hello", conversation="my-talk")
    history = await house.get("/api/sessions/my-talk/history")
    assert [message["role"] for message in history["messages"]] == ["user", "assistant"]


async def test_a_stream_of_a_response_builds_it_up(client: openai.AsyncOpenAI) -> None:
    async with client.responses.stream(model="operant", input="@list") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds
    assert final.output_text == "Let me look.\n\nThere are a few files."


@pytest.mark.parametrize("stream", [False, True])
async def test_functions_work_with_responses_too(client: openai.AsyncOpenAI, stream: bool) -> None:
    tools: Any = [{"type": "function", "strict": False, **WEATHER}]
    if stream:
        async with client.responses.stream(model="operant", input="@weather", tools=tools) as streamed:
            async for _ in streamed:
                pass
            made = await streamed.get_final_response()
    else:
        made = await client.responses.create(model="operant", input="@weather", tools=tools)
    (call,) = [item for item in made.output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Rome"})
    result: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    after = await client.responses.create(model="operant", input=result, tools=tools, previous_response_id=made.id)
    assert after.output_text == "It is sunny in Rome."


async def test_a_key_makes_one_turn(client: openai.AsyncOpenAI, server: ScriptedServer) -> None:
    for _ in range(2):
        made = await client.chat.completions.create(
            model="operant",
            messages=[{"role": "user", "content": "@hello"}],
            extra_headers={"Idempotency-Key": "k-1", "X-Operant-Session": "once"},
        )
        assert made.choices[0].message.content == "Good morning."
    assert len(server.requests) == 1


async def test_a_token_that_may_only_read_may_not_talk(house: Served) -> None:
    token = await house.add_token("looker", "read")
    async with openai.AsyncOpenAI(base_url=f"{house.url}/v1", api_key=token, max_retries=0) as client:
        assert (await client.models.list()).data
        with pytest.raises(openai.PermissionDeniedError):
            await client.chat.completions.create(model="operant", messages=[{"role": "user", "content": "@hello"}])


def _tools() -> Any:
    return [{"type": "function", "function": WEATHER}]


async def _calls(client: openai.AsyncOpenAI, messages: Any, stream: bool) -> list[dict[str, Any]]:
    """Ask, and return the calls that the client is to answer."""
    if not stream:
        made = await client.chat.completions.create(model="operant", messages=messages, tools=_tools())
        assert made.choices[0].finish_reason == "tool_calls"
        return [call.model_dump() for call in made.choices[0].message.tool_calls or []]
    pieces = await client.chat.completions.create(model="operant", messages=messages, tools=_tools(), stream=True)
    chunks = [chunk async for chunk in pieces]
    calls = [call.model_dump(exclude={"index"}) for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    return calls
