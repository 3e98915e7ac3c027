"""One suite over every protocol: what a model call must do, whoever answers it.

The table in docs/reference/models.md lists these outcomes; the server is strict in each protocol (`sdk/testing`).
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.http_model import HttpModel
from operant.kit.clock import SystemClock
from operant.kit.http import Http
from operant.kit.secret import Secret
from operant.sdk import (
    BlobRef,
    Facts,
    Message,
    ModelError,
    ModelRequest,
    Parameters,
    Reasoning,
    ReasoningDelta,
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

PROTOCOLS = {
    "openai": ("operant.ext.providers.chat:OpenAIChat", "/v1"),
    "responses": ("operant.ext.providers.responses:OpenAIResponses", "/v1"),
    "anthropic": ("operant.ext.providers.anthropic:Anthropic", "/v1"),
    "gemini": ("operant.ext.providers.gemini:Gemini", "/v1beta"),
}
LOOK = ToolSpec(
    name="look",
    description="Look.",
    schema={"type": "object", "properties": {"what": {"type": "string"}}, "additionalProperties": True},
)
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89"
    b"\0\0\0\nIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82"
)
SECRET = "sk-canary-123456"
FACTS = Facts(images=True, files=True, reasoning=True, output=4096)


class Talk(NamedTuple):
    """A server, a provider that speaks to it, and blobs."""

    protocol: str
    server: ScriptedServer
    model: HttpModel
    store: MemoryStore


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return request.param


def speaker(protocol: str, root: str, http: Http, store: MemoryStore, name: str = "test") -> HttpModel:
    where, path = PROTOCOLS[protocol]
    module, _, kind = where.partition(":")
    endpoint = Endpoint(name=name, base_url=root + path, key=Secret(SECRET, "TEST_KEY"), facts={"*": FACTS})
    dialect = getattr(importlib.import_module(module), kind)(endpoint, store)
    return HttpModel(endpoint, dialect, http, SystemClock())


@asynccontextmanager
async def talking(protocol: str, *steps: dict[str, Any]) -> AsyncIterator[Talk]:
    store = MemoryStore(SystemClock())
    async with scripted_server({"go": list(steps)}) as server, Http() as http:
        yield Talk(protocol, server, speaker(protocol, server.root, http, store), store)


def user(text: str, *files: BlobRef) -> Message:
    return Message(role="user", parts=(Text(text=text), *files))


def said(reply: Reply) -> Message:
    return Message(role="assistant", parts=reply.parts)


def results(reply: Reply, *more: BlobRef) -> list[Message]:
    return [
        Message(role="tool", parts=(Text(text=f"saw {call.id}"), *more), call_id=call.id, name=call.name)
        for call in calls_of(reply)
    ]


def calls_of(reply: Reply) -> list[ToolCall]:
    return [part for part in reply.parts if isinstance(part, ToolCall)]


def asking(*messages: Message, text: str = "@go", parameters: Parameters | None = None) -> ModelRequest:
    return ModelRequest(
        model="one",
        system="Be a test.",
        messages=messages or (user(text),),
        tools=(LOOK,),
        parameters=parameters or Parameters(),
    )


async def reply_of(model: HttpModel, request: ModelRequest | None = None) -> Reply:
    parts: list[StreamPart] = [part async for part in model.stream(request or asking())]
    assert isinstance(parts[-1], Reply)
    assert not any(isinstance(part, Reply) for part in parts[:-1])
    words = "".join(part.text for part in parts if isinstance(part, TextDelta))
    assert words == text_of(parts[-1].parts)
    thoughts = "".join(part.text for part in parts if isinstance(part, ReasoningDelta))
    assert thoughts == "".join(part.text for part in parts[-1].parts if isinstance(part, Reasoning))
    return parts[-1]


async def failure_of(model: HttpModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_of(model)
    assert "sk-canary" not in caught.value.line()
    return caught.value


# ---------------------------------------------------------------------------- what comes back


async def test_text_reasoning_calls_and_usage_arrive(protocol: str) -> None:
    step = {"text": "Hello", "chunks": 3, "reasoning": "hm", "calls": [{"name": "look", "arguments": {"what": "it"}}]}
    async with talking(protocol, step) as talk:
        reply = await reply_of(talk.model)
    assert "".join(part.text for part in reply.parts if isinstance(part, Reasoning)) == "hm"
    assert text_of(reply.parts) == "Hello"
    assert [(call.name, call.arguments.replace(" ", "")) for call in calls_of(reply)] == [("look", '{"what":"it"}')]
    assert reply.finish == "tool_calls"
    assert reply.usage.input > 0
    assert reply.usage.output > 0
    assert reply.usage.calls == 1


async def test_calls_come_side_by_side_and_a_whole_loop_is_accepted(protocol: str) -> None:
    both = [{"name": "look", "arguments": {"what": "a"}}, {"name": "look", "arguments": {"what": "b"}}]
    steps = ({"reasoning": "hm", "calls": both}, {"reasoning": "so", "calls": both[:1]}, {"text": "Done."})
    async with talking(protocol, *steps) as talk:
        messages = [user("@go")]
        first = await reply_of(talk.model, asking(*messages))
        assert len({call.id for call in calls_of(first)}) == 2
        messages += [said(first), *results(first)]
        second = await reply_of(talk.model, asking(*messages))
        messages += [said(second), *results(second)]
        third = await reply_of(talk.model, asking(*messages))
        assert text_of(third.parts) == "Done."
        messages += [said(third), user("@go again")]
        assert calls_of(await reply_of(talk.model, asking(*messages)))


async def test_a_message_that_came_in_between_is_taken_with_the_results(protocol: str) -> None:
    async with talking(protocol, {"calls": [{"name": "look"}]}, {"text": "Done."}) as talk:
        first = await reply_of(talk.model)
        messages = (user("@go"), said(first), *results(first), user("and hurry"), user("please"))
        assert await reply_of(talk.model, asking(*messages))


async def test_reasoning_of_another_provider_is_left_out(protocol: str) -> None:
    async with talking(protocol, {"reasoning": "hm", "calls": [{"name": "look"}]}, {"text": "Done."}) as talk:
        first = await reply_of(talk.model)
    messages = (user("@go"), said(first), *results(first), user("@go on"))
    for other in PROTOCOLS:
        async with talking(other, {"text": "Done."}) as talk, Http() as http:
            stranger = speaker(other, talk.server.root, http, talk.store, name="another")
            assert text_of((await reply_of(stranger, asking(*messages))).parts) == "Done."
            sent = str(talk.server.requests[0].body)
            assert all(part.opaque not in sent for part in first.parts if isinstance(part, Reasoning) and part.opaque)


async def test_tokens_that_were_cached_are_part_of_the_input(protocol: str) -> None:
    long = "words " * 4000
    async with talking(protocol, {"text": "One."}) as talk:
        first = await reply_of(talk.model, asking(user(f"@go {long}")))
        again = (user(f"@go {long}"), said(first), user("more"))
        second = await reply_of(talk.model, asking(*again))
    assert first.usage.cached == 0
    assert 0 < second.usage.cached <= second.usage.input
    assert second.usage.cached + second.usage.cache_write <= second.usage.input


# ---------------------------------------------------------------------------- what goes out


async def test_the_next_request_is_the_last_one_and_a_suffix(protocol: str) -> None:
    async with talking(protocol, {"text": "I look.", "calls": [{"name": "look"}]}, {"text": "ok"}) as talk:
        long = user("@go " + "words " * 2000)
        first = await reply_of(talk.model, asking(long))
        await reply_of(talk.model, asking(long, said(first), *results(first)))
        one, two = talk.server.requests
    assert two.common_prefix >= one.size - 300  # limits and cache markers stand at the end


@pytest.mark.parametrize("place", ["message", "result"])
async def test_a_picture_is_seen(protocol: str, place: str) -> None:
    async with talking(protocol, {"calls": [{"name": "look"}]}, {"text": "Nice."}) as talk:
        picture = await talk.store.put_blob(PNG, "image/png", "a.png")
        if place == "message":
            await reply_of(talk.model, asking(user("@go", picture)))
        else:
            first = await reply_of(talk.model)
            await reply_of(talk.model, asking(user("@go"), said(first), *results(first, picture)))
        sent = str(talk.server.requests[-1].body)
    assert "iVBORw0KGgo" in sent


async def test_a_model_that_sees_nothing_is_told_which_picture_there_is(protocol: str) -> None:
    refuses = '{"error": {"message": "This model does not support image input."}}'
    async with talking(protocol, {"status": 400, "body": refuses}) as talk:
        picture = await talk.store.put_blob(PNG, "image/png", "a.png")
        request = asking(user("@go", picture))
        with pytest.raises(ModelError) as caught:
            await reply_of(talk.model, request)
        assert (caught.value.kind, caught.value.retry_after) == ("unsupported", 0.0)
        talk.server.script("go", [{"text": "ok"}])
        assert text_of((await reply_of(talk.model, request)).parts) == "ok"
        assert "a.png" in str(talk.server.requests[-1].body)
        assert "iVBORw0KGgo" not in str(talk.server.requests[-1].body)


async def test_a_model_without_tools_is_asked_without(protocol: str) -> None:
    refuses = '{"error": {"message": "one does not support tools"}}'
    async with talking(protocol, {"status": 400, "body": refuses, "times": 1, "text": "ok"}) as talk:
        assert (await failure_of(talk.model)).kind == "unsupported"
        assert text_of((await reply_of(talk.model)).parts) == "ok"
        assert "tools" not in talk.server.requests[-1].body


async def test_an_answer_can_be_asked_for_in_a_shape(protocol: str) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    async with talking(protocol, {"text": '{"n": 3}'}) as talk:
        reply = await reply_of(talk.model, asking(parameters=Parameters(schema=schema)))
        assert "additionalProperties" in str(talk.server.requests[0].body)
    assert text_of(reply.parts) == '{"n": 3}'


@pytest.mark.parametrize("effort", ["none", "low", "high"])
async def test_limits_and_effort_are_taken(protocol: str, effort: Any) -> None:
    limits = Parameters(max_output_tokens=2000, effort=effort)
    async with talking(protocol, {"text": "ok"}) as talk:
        assert text_of((await reply_of(talk.model, asking(parameters=limits))).parts) == "ok"
        assert "2000" in str(talk.server.requests[0].body)


# ---------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("odd", [{"crlf": True}, {"split_utf8": True}, {"no_done": True}, {"duplicate_chunk": True}])
async def test_odd_but_whole_streams_are_understood(protocol: str, odd: dict[str, Any]) -> None:
    async with talking(protocol, {"text": "Grüße 👋", "chunks": 4, **odd}) as talk:
        try:
            reply = await reply_of(talk.model)
        except ModelError as error:  # where the last event is the one that says that all is well
            assert (error.kind, odd) == ("cut", {"no_done": True})
        else:
            assert text_of(reply.parts) == "Grüße 👋"


@pytest.mark.parametrize("pieces", range(12))
async def test_a_cut_stream_is_never_half_a_call(protocol: str, pieces: int) -> None:
    step = {"text": "abc", "chunks": 3, "calls": [{"name": "look", "arguments": {}}], "cut_after": pieces}
    async with talking(protocol, step) as talk:
        try:
            reply = await reply_of(talk.model)
        except ModelError as error:
            assert error.kind == "cut"
        else:
            assert pieces > 3
            assert len(calls_of(reply)) == 1


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
        ({"status": 500, "body": f"<html>{SECRET}"}, "server"),
        ({"blocked": True}, "content_filter"),
    ],
)
async def test_every_failure_has_its_kind(protocol: str, step: dict[str, Any], kind: str) -> None:
    async with talking(protocol, step) as talk:
        assert (await failure_of(talk.model)).kind == kind


async def test_an_error_in_the_middle_has_its_kind(protocol: str) -> None:
    async with talking(protocol, {"text": "a b c", "chunks": 3, "error_event": 2}) as talk:
        assert (await failure_of(talk.model)).kind in ("overloaded", "server")


async def test_a_refusal_is_shown(protocol: str) -> None:
    async with talking(protocol, {"text": "I will not.", "refusal": True}) as talk:
        try:
            reply = await reply_of(talk.model)
        except ModelError as error:
            assert error.kind == "content_filter"
        else:
            assert text_of(reply.parts) == "I will not."
            assert reply.finish in ("refusal", "content_filter")


async def test_how_long_to_wait_is_read_in_seconds_and_dates(protocol: str) -> None:
    async with talking(protocol, {"status": 429, "retry_after": "7"}) as talk:
        assert (await failure_of(talk.model)).retry_after == 7.0
    async with talking(protocol, {"status": 429, "retry_after": "Wed, 21 Oct 2099 07:28:00 GMT"}) as talk:
        assert (await failure_of(talk.model)).retry_after is not None


async def test_nobody_there_is_unreachable(protocol: str) -> None:
    async with Http() as http:
        error = await failure_of(speaker(protocol, "http://127.0.0.1:9", http, MemoryStore(SystemClock())))
    assert error.kind == "unreachable"


async def test_broken_arguments_go_to_the_gate_as_they_are_or_the_call_is_asked_for_again(protocol: str) -> None:
    async with talking(protocol, {"calls": [{"name": "look", "raw_args": '{"a": '}]}, {"text": "ok"}) as talk:
        try:
            reply = await reply_of(talk.model)
        except ModelError as error:
            assert (error.kind, error.retriable) == ("malformed", True)
            return
        assert [call.arguments for call in calls_of(reply)] == ['{"a": ']
        messages = (user("@go"), said(reply), *results(reply))
        assert text_of((await reply_of(talk.model, asking(*messages))).parts) == "ok"


async def test_missing_and_doubled_ids_are_made_good(protocol: str) -> None:
    calls = [{"name": "look", "id": ""}, {"name": "look", "id": "x"}, {"name": "look", "id": "x"}]
    async with talking(protocol, {"calls": calls}) as talk:
        reply = await reply_of(talk.model)
    ids = [call.id for call in calls_of(reply)]
    assert len(set(ids)) == 3
    assert all(ids)


async def test_a_call_cut_off_by_the_output_limit_is_not_run(protocol: str) -> None:
    step = {"text": "So", "calls": [{"name": "look", "raw_args": "{"}], "finish": "length"}
    async with talking(protocol, step) as talk:
        try:
            reply = await reply_of(talk.model)
        except ModelError as error:  # where the server itself finds that the call is none
            assert (protocol, error.kind, error.retriable) == ("gemini", "malformed", True)
            return
    assert reply.finish == "length"
    assert text_of(reply.parts) == "So"
    assert calls_of(reply) == []


async def test_leaving_early_closes_the_connection(protocol: str) -> None:
    step = {"text": "a b c", "chunks": 3, "chunk_delay_ms": 5, "stall_after": 6}
    async with talking(protocol, step) as talk:
        stream = talk.model.stream(asking())
        await anext(stream)
        await stream.aclose()
        async with asyncio.timeout(5):
            while not talk.server.requests[0].aborted:
                await asyncio.sleep(0)


async def test_fifty_streams_at_once_lose_nothing(protocol: str) -> None:
    step = {"text": "{1} " + "words " * 40, "chunks": 20, "reasoning": "hm", "chunk_delay_ms": 1}

    async def one(model: HttpModel, number: int) -> None:
        reply = await reply_of(model, asking(user(f"@go n{number}")))
        assert text_of(reply.parts) == f"n{number} " + "words " * 40

    async with talking(protocol, step) as talk, asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(one(talk.model, number))
