"""The OpenAI responses protocol against a real server: what is sent, what is kept, and what can go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.ext.providers.endpoint import Endpoint, Quirks
from operant.ext.providers.http_model import HttpModel
from operant.ext.providers.responses import OpenAIResponses
from operant.kit.clock import SystemClock
from operant.kit.http import Http
from operant.kit.secret import Secret
from operant.kit.sse import ServerEvent
from operant.sdk import (
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
MODEL = "gpt-5.5"


@asynccontextmanager
async def talking(
    *steps: Json, facts: Facts | None = None, name: str = "test"
) -> AsyncIterator[tuple[ScriptedServer, HttpModel, MemoryStore]]:
    clock = SystemClock()
    store = MemoryStore(clock)
    async with scripted_server({"go": list(steps)}) as server, Http() as http:
        key = Secret("sk-canary-123456", "TEST_KEY")
        endpoint = Endpoint(name=name, base_url=server.url, key=key, facts={"*": facts or Facts()})
        yield server, HttpModel(endpoint, OpenAIResponses(endpoint, store), http, clock), store


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def said(*parts: Part) -> Message:
    return Message(role="assistant", parts=parts)


def brought(call_id: str, *parts: Part | str) -> Message:
    return Message(role="tool", parts=user(*parts).parts, call_id=call_id, name="look")


def call(id: str, arguments: str = "{}", name: str = "look") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def asking(
    *messages: Message, parameters: Parameters | None = None, model: str = MODEL, session: str = ""
) -> ModelRequest:
    return ModelRequest(
        model=model,
        system="Be a test.",
        messages=(user("@go"), *messages),
        tools=(LOOK,),
        parameters=parameters or Parameters(),
        session=session,
    )


async def reply_of(model: HttpModel, request: ModelRequest | None = None) -> Reply:
    parts: list[StreamPart] = [part async for part in model.stream(request or asking())]
    reply = parts[-1]
    assert isinstance(reply, Reply)
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == text_of(reply.parts)
    return reply


async def failure_of(model: HttpModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_of(model)
    assert "sk-canary" not in caught.value.line()
    return caught.value


def dialect(name: str = "test") -> OpenAIResponses:
    return OpenAIResponses(Endpoint(name=name, base_url="http://nowhere"), MemoryStore(SystemClock()))


async def body_of(request: ModelRequest, facts: Facts | None = None, name: str = "test") -> Json:
    return msgspec.json.decode(await dialect(name).body(request, facts or Facts()))


def gathered(*events: Json) -> tuple[list[StreamPart], Reply]:
    """Feed events as the service sends them."""
    gathering = dialect().gathering(MODEL)
    shown = [part for one in events for part in gathering.add(ServerEvent(msgspec.json.encode(one).decode()))]
    return shown, gathering.reply()


def item(index: int, **fields: Any) -> Json:
    return {"type": "response.output_item.done", "output_index": index, "item": fields}


def message(text: str, **more: Any) -> Json:
    return {"type": "message", "content": [{"type": "output_text", "text": text}], **more}


def ended(status: str = "completed", **more: Any) -> Json:
    return {"type": f"response.{status}", "response": {"status": status, "output": [], **more}}


# ---------------------------------------------------------------------------- what comes back


async def test_text_thinking_calls_and_usage_arrive() -> None:
    counted = {
        "input_tokens": 90,
        "output_tokens": 20,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 5},
        "output_tokens_details": {"reasoning_tokens": 8},
    }
    calls = [{"name": "look", "arguments": {"a": 1}, "id": "x"}, {"name": "look", "id": "y"}]
    step = {"text": "Hello", "chunks": 3, "reasoning": "hm", "calls": calls, "usage": counted}
    async with talking(step) as (_, model, _):
        reply = await reply_of(model)
    thought, *rest = reply.parts
    assert isinstance(thought, Reasoning)
    assert thought.text == "hm"
    assert rest == [Text(text="Hello"), call("x", '{"a":1}'), call("y")]
    assert reply.finish == "tool_calls"
    usage = reply.usage
    assert (usage.input, usage.cached, usage.cache_write, usage.output, usage.reasoning) == (90, 60, 5, 20, 8)


@pytest.mark.parametrize("odd", [{"crlf": True}, {"split_utf8": True}, {"duplicate_chunk": True}])
async def test_odd_but_whole_streams_are_understood(odd: Json) -> None:
    async with talking({"text": "Grüße 👋", "chunks": 4, **odd}) as (_, model, _):
        assert text_of((await reply_of(model)).parts) == "Grüße 👋"


async def test_without_its_last_event_a_reply_is_not_whole() -> None:
    async with talking({"text": "So.", "no_done": True}) as (_, model, _):
        assert (await failure_of(model)).kind == "cut"


@pytest.mark.parametrize("pieces", range(14))
async def test_a_cut_stream_is_never_half_a_call(pieces: int) -> None:
    step = {"text": "abc", "chunks": 2, "calls": [{"name": "look", "arguments": {"a": "b"}}], "cut_after": pieces}
    async with talking(step) as (_, model, _):
        assert (await failure_of(model)).kind == "cut"


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"status": 401}, "auth"),
        ({"status": 404}, "not_found"),
        ({"status": 429}, "rate_limited"),
        ({"status": 500}, "server"),
        ({"status": 503}, "overloaded"),
        ({"status": 400}, "bad_request"),
        ({"status": 400, "body": '{"error":{"message":"Your input exceeds the context window."}}'}, "context_overflow"),
        ({"status": 500, "body": "<html>sk-canary-123456"}, "server"),
        ({"text": "so", "error_event": 3}, "server"),
        ({"finish": "failed"}, "server"),
        ({"blocked": True}, "content_filter"),
    ],
)
async def test_every_failure_has_its_kind(step: Json, kind: str) -> None:
    async with talking(step) as (_, model, _):
        assert (await failure_of(model)).kind == kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("rate_limit_exceeded", "rate_limited"),
        ("context_length_exceeded", "context_overflow"),
        ("server_error", "server"),
        ("overloaded_error", "overloaded"),
        ("insufficient_quota", "auth"),
        ("invalid_prompt", "content_filter"),
        ("invalid_image", "bad_request"),
        ("unheard_of", "server"),
    ],
)
@pytest.mark.parametrize("shape", ["event", "wrapped", "response"])
def test_an_error_in_the_stream_has_its_kind(code: str, kind: str, shape: str) -> None:
    fault = {"code": code, "message": "no"}
    event = {
        "event": {"type": "error", **fault},
        "wrapped": {"type": "error", "error": fault},
        "response": ended("failed", error=fault),
    }[shape]
    with pytest.raises(ModelError, match=r"^test failed in the middle: no$") as caught:
        gathered(event)
    assert caught.value.kind == kind


async def test_broken_arguments_are_passed_on_as_they_are_and_sent_back() -> None:
    step = {"calls": [{"name": "look", "raw_args": '{"a": ', "id": "c"}]}
    async with talking(step, {"text": "done"}) as (_, model, _):
        first = await reply_of(model)
        assert first.parts == (call("c", '{"a": '),)
        again = await reply_of(model, asking(said(*first.parts), brought("c", "not JSON")))
    assert text_of(again.parts) == "done"


async def test_a_call_at_the_output_limit_is_no_call() -> None:
    step = {"text": "So", "calls": [{"name": "look", "raw_args": "{"}], "finish": "length"}
    async with talking(step) as (_, model, _):
        reply = await reply_of(model)
    assert (reply.finish, reply.parts) == ("length", (Text(text="So"),))


async def test_what_a_filter_cut_off_is_shown_and_its_calls_are_not_run() -> None:
    _, reply = gathered(
        item(0, **message("So")),
        item(1, type="function_call", call_id="c", name="look", arguments="{}"),
        ended("incomplete", incomplete_details={"reason": "content_filter"}),
    )
    assert (reply.finish, reply.parts) == ("content_filter", (Text(text="So"),))


async def test_a_refusal_in_words_is_shown() -> None:
    async with talking({"text": "I will not.", "refusal": True}) as (_, model, _):
        reply = await reply_of(model)
    assert (reply.finish, text_of(reply.parts)) == ("refusal", "I will not.")


def test_unknown_events_and_items_are_skipped() -> None:
    shown, reply = gathered(
        {"type": "keepalive", "sequence_number": 3},
        {"type": "response.weather.delta", "delta": {"rain": True}, "output_index": "here"},
        item(0, type="web_search_call", id="ws", action={"content": 7}, content="odd"),
        item(1, **message("So.")),
        ended(),
    )
    assert shown == [TextDelta(text="So.")]
    assert reply.parts == (Text(text="So."),)


def test_a_repeated_event_is_taken_once_and_a_repeated_word_twice() -> None:
    def word(number: int) -> Json:
        return {"type": "response.output_text.delta", "delta": "ha ", "sequence_number": number}

    shown, _ = gathered(word(1), word(1), word(2), item(0, **message("ha ha ")), ended())
    assert shown == [TextDelta(text="ha "), TextDelta(text="ha ")]


def test_items_that_come_only_with_the_end_are_taken() -> None:
    _, reply = gathered(ended(output=[{"type": "reasoning", "id": "rs_1"}, message("So.")]))
    assert reply.parts == (Text(text="So."),)


def test_pieces_of_a_summary_stand_apart() -> None:
    summary = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    shown, reply = gathered(
        {"type": "response.reasoning_summary_text.delta", "delta": "one", "summary_index": 0},
        {"type": "response.reasoning_summary_text.delta", "delta": "tw", "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "delta": "o", "summary_index": 1},
        item(0, type="reasoning", id="rs_1", encrypted_content="xyz", summary=summary),
        item(1, **message("So.")),
        ended(),
    )
    assert "".join(part.text for part in shown if isinstance(part, ReasoningDelta)) == "one\n\ntwo"
    assert isinstance(reply.parts[0], Reasoning)
    assert reply.parts[0].text == "one\n\ntwo"


@given(st.text(max_size=60))
def test_no_event_however_odd_is_more_than_a_cut(data: str) -> None:
    try:
        dialect().gathering(MODEL).add(ServerEvent(data))
    except ModelError as error:
        assert error.kind == "cut"


async def test_leaving_early_closes_the_connection() -> None:
    async with talking({"text": "a b c", "chunks": 3, "chunk_delay_ms": 5, "stall_after": 6}) as (server, model, _):
        stream = model.stream(asking())
        await anext(stream)
        await stream.aclose()
        async with asyncio.timeout(5):
            while not server.requests[0].aborted:
                await asyncio.sleep(0)


# ---------------------------------------------------------------------------- what is sent


@pytest.mark.parametrize("redacted", [False, True])
async def test_thinking_goes_back_encrypted_before_the_calls(redacted: bool) -> None:
    step = {"text": "I look.", "reasoning": "hm", "redacted": redacted, "calls": [{"name": "look", "id": "c"}]}
    async with talking(step, {"text": "done"}) as (server, model, _):
        first = await reply_of(model)
        await reply_of(model, asking(said(*first.parts), brought("c", "saw it")))
        sent = server.requests[1].body
    assert [one["type"] for one in sent["input"]][1:] == [
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert sent["input"][1]["id"].startswith("rs_")
    assert sent["input"][1]["encrypted_content"]
    assert sent["store"] is False
    assert sent["include"] == ["reasoning.encrypted_content"]


async def test_thinking_of_another_provider_or_protocol_is_left_out() -> None:
    async with talking({"reasoning": "hm", "calls": [{"name": "look", "id": "c"}]}, name="one") as (_, model, _):
        first = await reply_of(model)
    foreign = Reasoning(text="elsewhere", opaque="anthropic one\nsigned:x")
    request = asking(said(foreign, *first.parts), brought("c", "saw it"))
    mine = [one["type"] for one in (await body_of(request, name="one"))["input"]]
    others = [one["type"] for one in (await body_of(request, name="two"))["input"]]
    assert mine == ["message", "reasoning", "function_call", "function_call_output"]
    assert others == ["message", "function_call", "function_call_output"]


async def test_thinking_goes_back_in_as_many_pieces_as_it_came() -> None:
    summary = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    content = [{"type": "reasoning_text", "text": "raw"}]
    _, reply = gathered(
        item(0, type="reasoning", id="rs_1", encrypted_content="xyz", summary=summary),
        item(1, type="reasoning", id="rs_2", content=content),
        item(2, **message("So.")),
        ended(),
    )
    sent = (await body_of(asking(said(*reply.parts), user("and?"))))["input"]
    assert sent[1] == {"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz", "summary": summary}
    assert sent[2] == {"type": "reasoning", "id": "rs_2", "content": content, "summary": []}


async def test_thinking_that_led_to_nothing_or_was_written_otherwise_is_not_sent() -> None:
    lonely = Reasoning(text="hm", opaque='responses test\n{"id":"rs_1","encrypted_content":"x"}')
    odd = Reasoning(text="hm", opaque="responses test\nnot JSON")
    body = await body_of(asking(said(odd, Text(text="So"), lonely), user("and?")))
    assert [one["type"] for one in body["input"]] == ["message", "message", "message"]


async def test_the_phase_of_a_message_goes_back_with_it() -> None:
    _, reply = gathered(
        item(0, **message("I look.", phase="commentary")),
        item(1, **message("It is so.", phase="final_answer")),
        item(2, **message("P.S.")),
        ended(),
    )
    assert text_of(reply.parts) == "I look.It is so.P.S."
    request = asking(said(*reply.parts), user("and?"))
    phases = [one.get("phase") for one in (await body_of(request))["input"][1:4]]
    assert phases == ["commentary", "final_answer", None]
    assert not any("phase" in one for one in (await body_of(request, name="other"))["input"])
    async with talking({"text": "on"}, {"text": "done"}) as (_, model, _):
        assert await reply_of(model, request)


async def test_ids_and_names_of_others_are_made_to_fit() -> None:
    long = "toolu_" + "x" * 80
    turn = (said(call(long, "", "functions.look it")), brought(long, ""))
    async with talking({"text": "on"}, {"text": "on"}, {"text": "done"}) as (server, model, _):
        await reply_of(model, asking(*turn, *turn))
        sent = server.requests[0].body["input"]
    assert [one["call_id"] for one in sent[1::2]] == [one["call_id"] for one in sent[2::2]]
    assert len({one["call_id"] for one in sent[1:]}) == 2
    assert (sent[1]["name"], sent[1]["arguments"]) == ("functions_look_it", "{}")


async def test_nothing_empty_is_sent() -> None:
    body = await body_of(ModelRequest(model=MODEL, system="", messages=(user(" "), said(Text(text="")), user("a"))))
    assert [one["content"][0]["text"] for one in body["input"]] == ["[no words]", "a"]
    assert "instructions" not in body
    assert "tools" not in body


async def test_pictures_and_papers_go_along_in_what_is_said_and_in_results() -> None:
    facts = Facts(images=True, files=True)
    async with talking({"text": "on"}, {"text": "done"}, facts=facts) as (server, model, store):
        picture = await store.put_blob(b"\x89PNG", "image/png", "a.png")
        paper = await store.put_blob(b"%PDF-1.7", "application/pdf", "b.pdf")
        await reply_of(model, asking(user(picture, paper), said(call("c")), brought("c", "see", picture, paper)))
        shown, result = server.requests[0].body["input"][1], server.requests[0].body["input"][-1]
    assert shown["content"][0]["image_url"] == "data:image/png;base64,iVBORw=="
    assert shown["content"][1]["filename"] == "b.pdf"
    assert [one["type"] for one in result["output"]] == ["input_text", "input_image", "input_file"]
    blind = (await body_of(asking(user(picture, paper)), Facts(images=False)))["input"][1]
    assert [one["text"][:12] for one in blind["content"]] == ["[file a.png,", "[file b.pdf,"]


async def test_the_next_request_is_the_last_one_and_a_suffix() -> None:
    more = (said(Text(text="I look."), call("c")), brought("c", "saw it"))
    async with talking({"text": "ok"}) as (server, model, _):
        await reply_of(model, asking())
        await reply_of(model, asking(*more))
        first, second = server.requests
    tail = len(b'],"include":["reasoning.encrypted_content"],"store":false,"stream":true}')
    assert second.common_prefix >= first.size - tail


# ---------------------------------------------------------------------------- how it is asked


@pytest.mark.parametrize(
    ("model", "asked", "expected"),
    [
        ("gpt-5.5", {}, {"include": True}),
        ("gpt-5.5", {"effort": "high", "temperature": 0.5}, {"include": True, "effort": "high", "summary": "auto"}),
        ("gpt-5.5", {"effort": "none"}, {"include": True, "effort": "none"}),
        ("gpt-5-mini", {"effort": "none"}, {"include": True, "effort": "minimal"}),
        ("o4-mini", {"effort": "none"}, {"include": True, "effort": "low"}),
        ("gpt-4.1", {"effort": "high", "temperature": 0.5}, {"temperature": 0.5}),
        ("llama-4", {"temperature": 0.5}, {"include": True, "temperature": 0.5}),
    ],
)
async def test_each_model_is_asked_for_what_it_knows(model: str, asked: Json, expected: Json) -> None:
    body = await body_of(asking(model=model, parameters=Parameters(**asked)))
    thinking = body.get("reasoning", {})
    found = {
        "include": bool(body.get("include")) or None,
        "effort": thinking.get("effort"),
        "summary": thinking.get("summary"),
        "temperature": body.get("temperature"),
    }
    assert {name: value for name, value in found.items() if value is not None} == expected


@pytest.mark.parametrize(("required", "strict"), [(["n"], True), ([], False)])
async def test_a_schema_is_strict_only_where_it_can_be(required: list[str], strict: bool) -> None:
    properties = {"n": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    async with talking({"text": '{"n":1}'}) as (server, model, _):
        await reply_of(model, asking(parameters=Parameters(schema=schema, max_output_tokens=3)))
        body = server.requests[0].body
    assert body["text"]["format"]["strict"] is strict
    assert body["max_output_tokens"] == 16


async def test_a_session_is_named_to_the_cache_but_not_told() -> None:
    one, same, two = [await body_of(asking(session=name)) for name in ("telegram:+4912345", "telegram:+4912345", "b")]
    assert one["prompt_cache_key"] == same["prompt_cache_key"] != two["prompt_cache_key"]
    assert "4912345" not in str(one)


def test_key_and_address_follow_the_endpoint() -> None:
    azure = Quirks(auth="api-key", query="api-version=preview")
    endpoint = Endpoint(name="a", base_url="https://a.example/openai/v1/", key=Secret("k"), quirks=azure)
    speaker = OpenAIResponses(endpoint, MemoryStore(SystemClock()))
    assert speaker.address("m") == "https://a.example/openai/v1/responses?api-version=preview"
    assert speaker.headers()["api-key"] == "k"
    assert "Authorization" not in speaker.headers()
