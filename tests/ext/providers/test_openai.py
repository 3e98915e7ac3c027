"""The OpenAI protocol against a real server: everything that can go wrong has one defined outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from operant.ext.providers.chat import OpenAIChat
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.http_model import HttpModel
from operant.kit.clock import SystemClock
from operant.kit.http import Http
from operant.kit.secret import Secret
from operant.sdk import (
    Message,
    ModelError,
    ModelRequest,
    Reasoning,
    Reply,
    StreamPart,
    Text,
    TextDelta,
    ToolCall,
    ToolSpec,
    text_of,
)
from operant.sdk.testing.server import ScriptedServer, scripted_server
from operant.sdk.testing.store import MemoryStore

LOOK = ToolSpec(name="look", description="Look.", schema={"type": "object", "properties": {}})


@asynccontextmanager
async def talking(*steps: dict[str, Any]) -> AsyncIterator[tuple[ScriptedServer, HttpModel]]:
    clock = SystemClock()
    async with scripted_server({"go": list(steps)}) as server, Http() as http:
        endpoint = Endpoint(name="test", base_url=server.url, key=Secret("sk-canary-123456", "TEST_KEY"))
        yield server, HttpModel(endpoint, OpenAIChat(endpoint, MemoryStore(clock)), http, clock)


def asking(*messages: Message, text: str = "@go") -> ModelRequest:
    return ModelRequest(
        model="one",
        system="Be a test.",
        messages=(Message(role="user", parts=(Text(text=text),)), *messages),
        tools=(LOOK,),
    )


async def reply_of(model: HttpModel, request: ModelRequest | None = None) -> Reply:
    parts: list[StreamPart] = [part async for part in model.stream(request or asking())]
    assert isinstance(parts[-1], Reply)
    assert not any(isinstance(part, Reply) for part in parts[:-1])
    words = "".join(part.text for part in parts if isinstance(part, TextDelta))
    assert words == text_of(parts[-1].parts)
    return parts[-1]


async def failure_of(model: HttpModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_of(model)
    assert "sk-canary" not in caught.value.line()
    return caught.value


async def test_text_reasoning_calls_and_usage_arrive() -> None:
    step = {
        "text": "Hello",
        "chunks": 3,
        "reasoning": "hm",
        "calls": [{"name": "look", "arguments": {"a": 1}, "id": "x"}],
    }
    async with talking(step) as (_, model):
        reply = await reply_of(model)
    assert reply.parts == (Reasoning(text="hm"), Text(text="Hello"), ToolCall(id="x", name="look", arguments='{"a":1}'))
    assert reply.finish == "tool_calls"
    assert reply.usage.input > 0
    assert reply.usage.output > 0


@pytest.mark.parametrize("odd", [{"crlf": True}, {"split_utf8": True}, {"no_done": True}, {"duplicate_chunk": True}])
async def test_odd_but_whole_streams_are_understood(odd: dict[str, Any]) -> None:
    async with talking({"text": "Grüße 👋", "chunks": 4, **odd}) as (_, model):
        reply = await reply_of(model)
    assert text_of(reply.parts) == "Grüße 👋"


@pytest.mark.parametrize("pieces", range(9))
async def test_a_cut_stream_is_never_half_a_call(pieces: int) -> None:
    step = {"text": "abc", "chunks": 3, "calls": [{"name": "look", "arguments": {}}], "cut_after": pieces}
    async with talking(step) as (_, model):
        try:
            reply = await reply_of(model)
        except ModelError as error:
            assert error.kind == "cut"
        else:
            assert pieces == 8
            assert any(isinstance(part, ToolCall) for part in reply.parts)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"status": 401}, "auth"),
        ({"status": 404}, "not_found"),
        ({"status": 429}, "rate_limited"),
        ({"status": 500}, "server"),
        ({"status": 503}, "overloaded"),
        ({"status": 529}, "overloaded"),
        ({"status": 400}, "bad_request"),
        (
            {"status": 400, "body": '{"error": {"message": "This model\'s maximum context length is 8192 tokens."}}'},
            "context_overflow",
        ),
        ({"status": 500, "body": "<html>sk-canary-123456"}, "server"),
        ({"finish": "content_filter"}, "content_filter"),
    ],
)
async def test_every_failure_has_its_kind(step: dict[str, Any], kind: str) -> None:
    async with talking(step) as (_, model):
        assert (await failure_of(model)).kind == kind


async def test_retry_after_is_read_in_seconds_milliseconds_and_dates() -> None:
    async with talking({"status": 429, "retry_after": "7"}) as (_, model):
        assert (await failure_of(model)).retry_after == 7.0
    async with talking({"status": 429, "headers": {"retry-after-ms": "250"}}) as (_, model):
        assert (await failure_of(model)).retry_after == 0.25
    async with talking({"status": 429, "retry_after": "Wed, 21 Oct 2099 07:28:00 GMT"}) as (_, model):
        assert (await failure_of(model)).retry_after is not None


async def test_nobody_there_is_unreachable() -> None:
    clock = SystemClock()
    async with Http() as http:
        endpoint = Endpoint(name="gone", base_url="http://127.0.0.1:9/v1")
        error = await failure_of(HttpModel(endpoint, OpenAIChat(endpoint, MemoryStore(clock)), http, clock))
    assert error.kind == "unreachable"


async def test_broken_arguments_are_passed_on_as_they_are() -> None:
    async with talking({"calls": [{"name": "look", "raw_args": '{"a": '}]}) as (_, model):
        reply = await reply_of(model)
    assert [part.arguments for part in reply.parts if isinstance(part, ToolCall)] == ['{"a": ']


async def test_missing_and_doubled_ids_are_made_good() -> None:
    calls = [{"name": "look", "id": ""}, {"name": "look", "id": "x"}, {"name": "look", "id": "x"}]
    async with talking({"calls": calls}) as (_, model):
        reply = await reply_of(model)
    ids = [part.id for part in reply.parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == 3
    assert all(ids)


async def test_a_call_cut_off_by_the_output_limit_is_not_run() -> None:
    async with talking({"text": "So", "calls": [{"name": "look", "raw_args": "{"}], "finish": "length"}) as (_, model):
        reply = await reply_of(model)
    assert reply.finish == "length"
    assert reply.parts == (Text(text="So"),)


async def test_leaving_early_closes_the_connection() -> None:
    async with talking({"text": "a b c", "chunks": 3, "chunk_delay_ms": 5, "stall_after": 2}) as (server, model):
        stream = model.stream(asking())
        await anext(stream)
        await stream.aclose()
        async with asyncio.timeout(5):
            while not server.requests[0].aborted:
                await asyncio.sleep(0)


async def test_the_next_request_is_the_last_one_and_a_suffix() -> None:
    call = ToolCall(id="c", name="look", arguments="{}")
    more = (
        Message(role="assistant", parts=(Text(text="I look."), call)),
        Message(role="tool", parts=(Text(text="saw it"),), call_id="c", name="look"),
    )
    async with talking({"text": "ok"}) as (server, model):
        await reply_of(model, asking())
        await reply_of(model, asking(*more))
        first, second = server.requests
    tail = len(b'],"stream":true,"stream_options":{"include_usage":true}}')
    assert second.common_prefix >= first.size - tail


async def test_a_picture_goes_along_as_data() -> None:
    clock = SystemClock()
    store = MemoryStore(clock)
    ref = await store.put_blob(b"\x89PNG", "image/png", "a.png")
    async with scripted_server() as server, Http() as http:
        endpoint = Endpoint(name="test", base_url=server.url)
        model = HttpModel(endpoint, OpenAIChat(endpoint, store), http, clock)
        message = Message(role="user", parts=(Text(text="What is this?"), ref))
        await reply_of(model, ModelRequest(model="one", system="", messages=(message,)))
        content = server.requests[0].body["messages"][1]["content"]
    assert content[1]["image_url"]["url"] == "data:image/png;base64,iVBORw=="
