"""The Anthropic messages protocol against a real server: what is sent, what is kept, and what can go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.ext.providers.anthropic import Anthropic
from operant.ext.providers.endpoint import Endpoint, Quirks
from operant.ext.providers.http_model import HttpModel
from operant.kit.clock import SystemClock
from operant.kit.http import Http
from operant.kit.secret import Secret
from operant.kit.sse import ServerEvent
from operant.sdk import (
    BlobRef,
    Facts,
    Json,
    Message,
    ModelError,
    ModelRequest,
    Parameters,
    Part,
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

LOOK = ToolSpec(name="look", description="Look.", schema={"type": "object", "properties": {}})
MODEL = "claude-sonnet-4-6"
TAIL = len(b',"cache_control":{"type":"ephemeral"}}]}],"max_tokens":16384,"stream":true}')


@asynccontextmanager
async def talking(
    *steps: Json, facts: Facts | None = None, name: str = "test"
) -> AsyncIterator[tuple[ScriptedServer, HttpModel, MemoryStore]]:
    clock = SystemClock()
    store = MemoryStore(clock)
    async with scripted_server({"go": list(steps)}) as server, Http() as http:
        key = Secret("sk-canary-123456", "TEST_KEY")
        endpoint = Endpoint(name=name, base_url=server.url, key=key, facts={"*": facts or Facts()})
        yield server, HttpModel(endpoint, Anthropic(endpoint, store), http, clock), store


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def said(*parts: Part) -> Message:
    return Message(role="assistant", parts=parts)


def brought(call_id: str, *parts: Part | str) -> Message:
    return Message(role="tool", parts=user(*parts).parts, call_id=call_id, name="look")


def call(id: str, arguments: str = "{}", name: str = "look") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def asking(*messages: Message, parameters: Parameters | None = None, model: str = MODEL) -> ModelRequest:
    return ModelRequest(
        model=model,
        system="Be a test.",
        messages=(user("@go"), *messages),
        tools=(LOOK,),
        parameters=parameters or Parameters(),
    )


async def reply_of(model: HttpModel, request: ModelRequest | None = None) -> Reply:
    parts: list[StreamPart] = [part async for part in model.stream(request or asking())]
    reply = parts[-1]
    assert isinstance(reply, Reply)
    words = "".join(part.text for part in parts if isinstance(part, TextDelta))
    assert words == text_of(reply.parts)
    return reply


async def failure_of(model: HttpModel, request: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_of(model, request)
    assert "sk-canary" not in caught.value.line()
    return caught.value


async def body_of(request: ModelRequest, facts: Facts | None = None, name: str = "test") -> Json:
    dialect = Anthropic(Endpoint(name=name, base_url="http://nowhere"), MemoryStore(SystemClock()))
    return msgspec.json.decode(await dialect.body(request, facts or Facts()))


def gathered(*events: Json) -> tuple[list[StreamPart], Reply]:
    """Feed events as the service sends them."""
    gathering = Anthropic(Endpoint(name="test", base_url=""), MemoryStore(SystemClock())).gathering(MODEL)
    shown = [part for one in events for part in gathering.add(ServerEvent(msgspec.json.encode(one).decode()))]
    return shown, gathering.reply()


def block(index: int, content: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def stopped(reason: str | None = "end_turn", **more: Any) -> list[Json]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason, **more}}, {"type": "message_stop"}]


def markers(body: Json) -> list[str]:
    """Return where cache markers stand."""
    found = ["tools"] * sum("cache_control" in tool for tool in body.get("tools", ()))
    found += ["system"] * sum("cache_control" in one for one in body.get("system", ()))
    for at, message in enumerate(body["messages"]):
        found += [f"{at}.{number}" for number, one in enumerate(message["content"]) if "cache_control" in one]
    return found


# ---------------------------------------------------------------------------- what comes back


async def test_text_thinking_calls_and_usage_arrive() -> None:
    step = {
        "text": "Hello",
        "chunks": 3,
        "reasoning": "hm, so it is",
        "calls": [{"name": "look", "arguments": {"a": 1}, "id": "x"}, {"name": "look", "id": "y"}],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30},
    }
    async with talking(step) as (_, model, _):
        reply = await reply_of(model)
    thought, *rest = reply.parts
    assert isinstance(thought, Reasoning)
    assert thought.text == "hm, so it is"
    assert rest == [Text(text="Hello"), call("x", '{"a":1}'), call("y")]
    assert reply.finish == "tool_calls"
    assert (reply.usage.input, reply.usage.cached, reply.usage.cache_write) == (240, 200, 30)
    assert reply.usage.reasoning == 3
    assert reply.usage.output > reply.usage.reasoning


@pytest.mark.parametrize("odd", [{"crlf": True}, {"split_utf8": True}, {"no_done": True}, {"duplicate_chunk": True}])
async def test_odd_but_whole_streams_are_understood(odd: Json) -> None:
    async with talking({"text": "Grüße 👋", "chunks": 4, **odd}) as (_, model, _):
        assert text_of((await reply_of(model)).parts) == "Grüße 👋"


@pytest.mark.parametrize("pieces", range(12))
async def test_a_cut_stream_is_never_half_a_call(pieces: int) -> None:
    step = {"text": "abc", "chunks": 2, "calls": [{"name": "look", "arguments": {"a": "b"}}], "cut_after": pieces}
    async with talking(step) as (_, model, _):
        assert (await failure_of(model)).kind == "cut"


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"status": 401}, "auth"),
        ({"status": 404}, "not_found"),
        ({"status": 413}, "context_overflow"),
        ({"status": 429}, "rate_limited"),
        ({"status": 500}, "server"),
        ({"status": 529}, "overloaded"),
        ({"status": 400}, "bad_request"),
        (
            {"status": 400, "body": '{"type":"error","error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}'},
            "context_overflow",
        ),
        ({"status": 500, "body": "<html>sk-canary-123456"}, "server"),
        ({"text": "so", "error_event": 3}, "overloaded"),
        ({"blocked": True}, "content_filter"),
        ({"finish": "context"}, "context_overflow"),
    ],
)
async def test_every_failure_has_its_kind(step: Json, kind: str) -> None:
    async with talking(step) as (_, model, _):
        assert (await failure_of(model)).kind == kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("rate_limit_error", "rate_limited"),
        ("api_error", "server"),
        ("timeout_error", "timeout"),
        ("billing_error", "auth"),
        ("invalid_request_error", "bad_request"),
        ("unheard_of", "server"),
    ],
)
def test_an_error_in_the_stream_has_its_kind_and_not_the_key(code: str, kind: str) -> None:
    endpoint = Endpoint(name="test", base_url="", key=Secret("sk-canary-123456"))
    gathering = Anthropic(endpoint, MemoryStore(SystemClock())).gathering(MODEL)
    fault = {"type": "error", "error": {"type": code, "message": "no, sk-canary-123456"}}
    with pytest.raises(ModelError) as caught:
        gathering.add(ServerEvent(msgspec.json.encode(fault).decode()))
    assert caught.value.kind == kind
    assert caught.value.sentence == "test failed in the middle: no, ***"


async def test_broken_arguments_are_passed_on_as_they_are() -> None:
    async with talking({"calls": [{"name": "look", "raw_args": '{"a": '}]}) as (_, model, _):
        assert (await reply_of(model)).parts == (call(ANY_ID, '{"a": '),)


class _AnyId(str):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.startswith("toolu_")

    __hash__ = str.__hash__


ANY_ID = _AnyId("any")


@pytest.mark.parametrize("finish", ["length", "context"])
async def test_a_call_at_the_output_limit_is_no_call(finish: str) -> None:
    async with talking({"text": "So", "calls": [{"name": "look", "raw_args": "{"}], "finish": finish}) as (_, model, _):
        reply = await reply_of(model)
    assert reply.finish == "length"
    assert reply.parts == (Text(text="So"),)


async def test_a_refusal_in_words_is_shown() -> None:
    async with talking({"text": "I will not.", "refusal": True}) as (_, model, _):
        reply = await reply_of(model)
    assert (reply.finish, text_of(reply.parts)) == ("refusal", "I will not.")


def test_a_refusal_without_words_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}
    with pytest.raises(ModelError, match=r"test refused to answer: It could do harm\.") as caught:
        gathered(*stopped("refusal", stop_details=details))
    assert caught.value.kind == "content_filter"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("pause_turn", "stop"), ("tool_use", "stop"), ("new", "new")],
)
def test_every_reason_to_stop_has_a_name(reason: str, finish: str) -> None:
    _, reply = gathered(*block(0, {"type": "text", "text": "So."}), *stopped(reason))
    assert reply.finish == finish


def test_unknown_events_and_blocks_are_skipped() -> None:
    shown, reply = gathered(
        {"type": "ping"},
        {"type": "weather", "delta": "rain", "index": "here"},
        *block(
            0, {"type": "server_tool_use", "id": "s", "input": {}}, {"type": "input_json_delta", "partial_json": "{"}
        ),
        *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "So."}, {"type": "citations_delta"}),
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "lost"}},
        *stopped(),
    )
    assert shown == [TextDelta(text="So.")]
    assert reply.parts == (Text(text="So."),)


def test_what_comes_with_the_opening_of_a_block_counts() -> None:
    shown, reply = gathered(
        *block(0, {"type": "thinking", "thinking": "hm"}),
        *block(1, {"type": "text", "text": "So."}),
        *block(2, {"type": "tool_use", "id": "c", "name": "look", "input": {"a": 1}}),
        *stopped("tool_use"),
    )
    assert shown == [ReasoningDelta(text="hm"), TextDelta(text="So.")]
    assert reply.parts == (Reasoning(text="hm"), Text(text="So."), call("c", '{"a":1}'))


def test_counts_that_come_only_at_the_end_are_taken_and_zeros_do_not_undo_them() -> None:
    nothing = {"input_tokens": 0, "output_tokens": 0}
    started = {"type": "message_start", "message": {"usage": {"input_tokens": 7, "cache_read_input_tokens": None}}}
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {**nothing, "output_tokens": 5}}
    _, reply = gathered(started, *block(0, {"type": "text", "text": "x"}), ended)
    assert (reply.usage.input, reply.usage.output) == (7, 5)


def test_missing_and_doubled_ids_are_made_good() -> None:
    uses = [block(at, {"type": "tool_use", "id": id, "name": "look"}) for at, id in enumerate(["", "x", "x"])]
    _, reply = gathered(*(event for events in uses for event in events), *stopped("tool_use"))
    ids = [part.id for part in reply.parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == 3
    assert all(ids)


@given(st.text(max_size=60))
def test_no_event_however_odd_is_more_than_a_cut(data: str) -> None:
    gathering = Anthropic(Endpoint(name="test", base_url=""), MemoryStore(SystemClock())).gathering(MODEL)
    try:
        gathering.add(ServerEvent(data))
    except ModelError as error:
        assert error.kind == "cut"


async def test_leaving_early_closes_the_connection() -> None:
    async with talking({"text": "a b c", "chunks": 3, "chunk_delay_ms": 5, "stall_after": 5}) as (server, model, _):
        stream = model.stream(asking())
        await anext(stream)
        await stream.aclose()
        async with asyncio.timeout(5):
            while not server.requests[0].aborted:
                await asyncio.sleep(0)


# ---------------------------------------------------------------------------- what is sent


@pytest.mark.parametrize("redacted", [False, True])
@pytest.mark.parametrize("model_name", [MODEL, "claude-sonnet-4-5"])
async def test_thinking_goes_back_as_it_came_before_the_calls(redacted: bool, model_name: str) -> None:
    step = {"text": "I look.", "reasoning": "hm", "redacted": redacted, "calls": [{"name": "look", "id": "c"}]}
    thinking = Parameters(effort="high")
    async with talking(step, {"text": "done"}) as (server, model, _):
        first = await reply_of(model, asking(parameters=thinking, model=model_name))
        more = (said(*first.parts), brought("c", "saw it"))
        await reply_of(model, asking(*more, parameters=thinking, model=model_name))
        sent = server.requests[1].body
    kinds = [one["type"] for one in sent["messages"][1]["content"]]
    assert kinds == ["redacted_thinking" if redacted else "thinking", "text", "tool_use"]
    assert sent["thinking"]["type"] == ("adaptive" if model_name == MODEL else "enabled")


async def test_thinking_of_another_provider_or_protocol_is_left_out() -> None:
    step = {"reasoning": "hm", "calls": [{"name": "look", "id": "c"}]}
    async with talking(step, name="one") as (_, model, _):
        first = await reply_of(model)
    foreign = Reasoning(text="elsewhere", opaque="responses one\n{}")
    request = asking(said(foreign, *first.parts), brought("c", "saw it"), parameters=Parameters(effort="high"))
    assert [one["type"] for one in (await body_of(request, name="one"))["messages"][1]["content"]] == [
        "thinking",
        "tool_use",
    ]
    assert [one["type"] for one in (await body_of(request, name="two"))["messages"][1]["content"]] == ["tool_use"]


async def test_a_budget_is_not_asked_for_where_a_stranger_made_the_calls() -> None:
    request = asking(said(call("c")), brought("c", "saw it"), parameters=Parameters(effort="high"))
    strange = msgspec.structs.replace(request, model="claude-haiku-4-5")
    assert "thinking" not in await body_of(strange)
    async with talking({"text": "on"}, {"text": "done"}) as (_, model, _):
        assert text_of((await reply_of(model, strange)).parts) == "done"


async def test_thinking_that_led_to_nothing_is_not_sent() -> None:
    request = asking(said(Text(text="So"), Reasoning(text="hm", opaque="anthropic test\nsigned:x")), user("and?"))
    assert (await body_of(request))["messages"][1]["content"] == [{"type": "text", "text": "So"}]


async def test_results_come_first_and_what_was_said_meanwhile_after_them() -> None:
    more = (said(call("a"), call("b")), brought("a", "A"), user("wait"), brought("b", "B"), user("and this"))
    async with talking({"text": "on"}, {"text": "done"}) as (server, model, _):
        await reply_of(model, asking(*more))
        messages = server.requests[0].body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    kinds = [one.get("tool_use_id") or one["text"] for one in messages[2]["content"]]
    assert kinds == ["a", "b", "wait", "and this"]


async def test_ids_names_and_arguments_of_others_are_made_to_fit() -> None:
    odd = call("call:1/ü", '{"a": ', "functions.look it")
    body = await body_of(asking(said(odd, call("b", "[1]"), call("c", "")), brought("call:1/ü", "A"), brought("b", "")))
    first, second, third = body["messages"][1]["content"]
    assert first["id"].startswith("call_")
    assert first["id"] == body["messages"][2]["content"][0]["tool_use_id"]
    assert first["name"] == "functions_look_it"
    assert first["input"] == {"_raw": '{"a": '}
    assert (second["input"], third["input"]) == ({"_raw": "[1]"}, {})


async def test_ids_that_begin_anew_in_every_reply_are_told_apart() -> None:
    turn = (said(call("call_0")), brought("call_0", "A"))
    async with talking({"text": "on"}, {"text": "on"}, {"text": "on"}, {"text": "done"}) as (server, model, _):
        await reply_of(model, asking(*turn, *turn, *turn))
        messages = server.requests[0].body["messages"]
    used = [message["content"][0]["id"] for message in messages[1::2]]
    assert len(set(used)) == 3
    assert [message["content"][0]["tool_use_id"] for message in messages[2::2]] == used


async def test_nothing_empty_is_sent_and_the_user_has_the_first_and_the_last_word() -> None:
    empty = ModelRequest(model=MODEL, system=" ", messages=(said(Text(text="Hi")), user(" "), said(Text(text="\n"))))
    body = await body_of(empty)
    assert "system" not in body
    assert [one["content"][0]["text"] for one in body["messages"]] == ["[the conversation goes on]", "Hi", "[no words]"]
    ended = ModelRequest(model=MODEL, system="", messages=(user("a"), said(Text(text="b"))))
    assert (await body_of(ended))["messages"][-1]["role"] == "user"


async def test_pictures_and_papers_go_along_in_what_is_said_and_in_results() -> None:
    facts = Facts(images=True, files=True)
    async with talking({"text": "on"}, {"text": "done"}, facts=facts) as (server, model, store):
        picture = await store.put_blob(b"\x89PNG", "image/png", "a.png")
        paper = await store.put_blob(b"%PDF-1.7", "application/pdf", "b.pdf")
        await reply_of(model, asking(user(picture, paper), said(call("c")), brought("c", "see", picture, paper)))
        first, _, result = server.requests[0].body["messages"]
    assert [one["type"] for one in first["content"]] == ["text", "image", "document"]
    assert first["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert [one["type"] for one in result["content"][0]["content"]] == ["text", "image", "document"]


@pytest.mark.parametrize(
    ("ref", "facts"),
    [
        (BlobRef(digest="0" * 64, size=9, media_type="image/png", name="x"), Facts(images=False)),
        (BlobRef(digest="0" * 64, size=9, media_type="application/pdf", name="x"), Facts(files=False)),
        (BlobRef(digest="0" * 64, size=9, media_type="image/svg+xml", name="x"), Facts()),
        (BlobRef(digest="0" * 64, size=90_000_000, media_type="image/png", name="x"), Facts()),
        (BlobRef(digest="0" * 64, size=9, media_type="image/png", name="x"), Facts()),
    ],
    ids=["no images", "no files", "another kind", "too large", "lost"],
)
async def test_a_file_that_cannot_go_along_is_named(ref: BlobRef, facts: Facts) -> None:
    content = (await body_of(asking(user(ref)), facts))["messages"][0]["content"]
    assert content[1]["text"].startswith("[file x, ")


# ---------------------------------------------------------------------------- the cache


async def test_the_next_request_is_the_last_one_and_a_suffix() -> None:
    more = (said(Text(text="I look."), call("c")), brought("c", "saw it"))
    async with talking({"text": "ok"}) as (server, model, _):
        await reply_of(model, asking())
        reply = await reply_of(model, asking(*more))
        first, second = server.requests
    assert second.common_prefix >= first.size - TAIL
    assert markers(second.body) == ["tools", "system", "2.0"]
    assert reply.usage.cached > 0


@pytest.mark.parametrize("calls", [1, 5, 12, 40])
async def test_the_whole_of_the_last_request_is_cached_however_many_calls_there_were(calls: int) -> None:
    history: list[Message] = []
    async with talking({"text": "ok"}) as (server, model, _):
        for step in range(4):
            reply = await reply_of(model, asking(*history))
            if step:
                before = server.requests[-2]
                assert reply.usage.cached >= before.size // 4 - 60
            assert len(markers(server.requests[-1].body)) <= 4
            ids = [f"s{step}c{number}" for number in range(calls)]
            history += [said(*(call(id) for id in ids)), *(brought(id, f"saw {id}") for id in ids)]


# ---------------------------------------------------------------------------- how it is asked


@pytest.mark.parametrize(
    ("model", "asked", "expected"),
    [
        ("claude-opus-5-5", {}, {}),
        ("claude-opus-4-8", {"effort": "low"}, {"thinking": "adaptive", "effort": "low"}),
        ("claude-opus-4-8", {"effort": "none"}, {}),
        ("claude-opus-5", {"effort": "none"}, {"thinking": "disabled"}),
        ("claude-fable-5-1", {"effort": "none"}, {"effort": "low"}),
        ("claude-mythos-preview", {"effort": "high"}, {"thinking": "adaptive", "effort": "high"}),
        ("claude-opus-4-7", {"temperature": 0.5}, {}),
        ("claude-sonnet-4-6", {"temperature": 0.5}, {"temperature": 0.5}),
        ("claude-sonnet-4-6", {"temperature": 1.5}, {"temperature": 1.0}),
        ("claude-sonnet-4-6", {"temperature": 0.5, "effort": "high"}, {"thinking": "adaptive", "effort": "high"}),
        ("claude-haiku-4-5-20251001", {"effort": "high"}, {"thinking": "enabled", "budget": 8192}),
        ("claude-haiku-4-5", {"effort": "low", "max_output_tokens": 1500}, {}),
        ("us.anthropic.claude-opus-4-6-v1", {"effort": "low"}, {"thinking": "adaptive", "effort": "low"}),
        ("claude-3-5-haiku-latest", {"effort": "high", "temperature": 0.2}, {"temperature": 0.2}),
        ("claude-3-7-sonnet-latest", {"effort": "low"}, {"thinking": "enabled", "budget": 2048}),
        ("claude-sonnet-4-20250514", {"effort": "low"}, {"thinking": "enabled", "budget": 2048}),
        ("glm-5", {"effort": "low", "temperature": 0.2}, {"temperature": 0.2}),
    ],
)
async def test_each_generation_is_asked_in_its_own_way(model: str, asked: Json, expected: Json) -> None:
    body = await body_of(asking(model=model, parameters=Parameters(**asked)))
    thinking, output = body.get("thinking", {}), body.get("output_config", {})
    found = {
        "thinking": thinking.get("type"),
        "budget": thinking.get("budget_tokens"),
        "effort": output.get("effort"),
        "temperature": body.get("temperature"),
    }
    assert {name: value for name, value in found.items() if value is not None} == expected


@pytest.mark.parametrize(
    ("facts", "asked", "most"),
    [
        (Facts(), None, 16_384),
        (Facts(window=8_000), None, 2_000),
        (Facts(output=64_000), None, 64_000),
        (Facts(output=4_096), 9_000, 4_096),
        (Facts(), 9_000, 9_000),
    ],
)
async def test_the_output_limit_is_always_named(facts: Facts, asked: int | None, most: int) -> None:
    body = await body_of(asking(parameters=Parameters(max_output_tokens=asked)), facts)
    assert body["max_tokens"] == most


async def test_a_schema_is_closed_and_without_limits_on_values() -> None:
    inner = {"type": "object", "properties": {"minimum": {"type": "integer", "minimum": 3}}}
    schema = {"type": "object", "properties": {"all": {"type": "array", "items": inner}}}
    async with talking({"text": "{}"}) as (server, model, _):
        await reply_of(model, asking(parameters=Parameters(schema=schema)))
        sent = server.requests[0].body["output_config"]["format"]["schema"]
    assert sent["properties"]["all"]["items"] == {
        "type": "object",
        "properties": {"minimum": {"type": "integer"}},
        "additionalProperties": False,
    }


async def test_a_tool_with_alternatives_at_its_top_is_still_taken() -> None:
    odd = ToolSpec(name="a.b", description="", schema={"anyOf": [{"required": ["x"]}], "properties": {"x": {}}})
    request = msgspec.structs.replace(asking(), tools=(odd,))
    async with talking({"text": "ok"}) as (server, model, _):
        await reply_of(model, request)
        (tool,) = server.requests[0].body["tools"]
    assert tool["name"] == "a_b"
    assert tool["input_schema"] == {"type": "object", "properties": {"x": {}}}


def test_key_version_and_address_follow_the_endpoint() -> None:
    usual = Endpoint(name="a", base_url="https://a.example/v1/", key=Secret("k"))
    bearer = Quirks(auth="bearer", query="api-version=1")
    other = Endpoint(name="b", base_url="https://b.example", key=Secret("k"), quirks=bearer)
    store = MemoryStore(SystemClock())
    assert Anthropic(usual, store).address("m") == "https://a.example/v1/messages"
    assert Anthropic(usual, store).headers()["x-api-key"] == "k"
    assert Anthropic(usual, store).headers()["anthropic-version"] == "2023-06-01"
    assert Anthropic(other, store).address("m") == "https://b.example/messages?api-version=1"
    assert Anthropic(other, store).headers()["Authorization"] == "Bearer k"
    newer = msgspec.structs.replace(usual, headers={"Anthropic-Version": "2027-01-01"})
    assert "anthropic-version" not in Anthropic(newer, store).headers()
