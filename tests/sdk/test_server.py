"""Our scripted model server, with the official OpenAI SDK as its judge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from operant.sdk.testing.server import ScriptedServer, scripted_server

CALL = {"name": "look", "arguments": {"what": "{1}"}}


@asynccontextmanager
async def client(server: ScriptedServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as made:
        yield made


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def test_a_reply_in_one_piece_has_text_calls_and_usage() -> None:
    async with scripted_server({"go": [{"text": "Looking.", "calls": [CALL]}]}) as server, client(server) as api:
        reply = await api.chat.completions.create(model="one", messages=user("@go left"))
    message = reply.choices[0].message
    assert message.content == "Looking."
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.arguments == '{"what":"left"}'  # type: ignore[union-attr]
    assert reply.choices[0].finish_reason == "tool_calls"
    assert reply.usage is not None
    assert reply.usage.prompt_tokens > 0


async def test_a_stream_adds_up_to_the_same() -> None:
    script = {"go": [{"text": "one two three", "chunks": 5, "calls": [CALL], "split_utf8": True}]}
    async with scripted_server(script) as server, client(server) as api:
        text, arguments, usage = "", "", None
        options: Any = {"include_usage": True}
        async for chunk in await api.chat.completions.create(
            model="one", messages=user("@go left"), stream=True, stream_options=options
        ):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or ():
                    arguments += (call.function and call.function.arguments) or ""
    assert text == "one two three"
    assert arguments == '{"what":"left"}'
    assert usage is not None


async def test_the_step_follows_from_the_request_alone() -> None:
    script = {"go": [{"calls": [CALL]}, {"text": "Done with {1}."}]}
    async with scripted_server(script) as server, client(server) as api:
        first = await api.chat.completions.create(model="one", messages=user("@go left"))
        asked = first.choices[0].message
        assert asked.tool_calls is not None
        answer: Any = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "saw it"}
        messages = [*user("@go left"), asked.model_dump(exclude_none=True), answer]
        last = await api.chat.completions.create(model="one", messages=messages)
    assert last.choices[0].message.content == "Done with left."


async def test_statuses_and_retry_after_are_as_scripted() -> None:
    script = {"busy": [{"status": 429, "retry_after": "3", "times": 1, "text": "Now."}]}
    async with scripted_server(script) as server, client(server) as api:
        with pytest.raises(openai.RateLimitError) as caught:
            await api.chat.completions.create(model="one", messages=user("@busy"))
        assert caught.value.response.headers["retry-after"] == "3"
        reply = await api.chat.completions.create(model="one", messages=user("@busy"))
    assert reply.choices[0].message.content == "Now."


async def test_a_call_without_its_result_is_refused_as_openai_does() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    broken: list[Any] = [*user("hi"), {"role": "assistant", "tool_calls": [call]}, *user("and?")]
    async with scripted_server() as server, client(server) as api:
        with pytest.raises(openai.BadRequestError, match="tool_calls"):
            await api.chat.completions.create(model="one", messages=broken)


async def test_a_cut_stream_is_an_error_to_the_client() -> None:
    async with (
        scripted_server({"cut": [{"text": "abc", "chunks": 3, "cut_after": 2}]}) as server,
        client(server) as api,
    ):
        with pytest.raises(openai.APIConnectionError):
            async for _ in await api.chat.completions.create(model="one", messages=user("@cut"), stream=True):
                pass
