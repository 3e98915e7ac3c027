"""One script, four protocols: the official SDKs hear the same from all of them."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from operant.sdk.testing.server import scripted_server
from operant.sdk.testing.wires.pictures import picture
from tests.sdk.clients import PROTOCOLS, SCHEMA, talking

CALL = {"name": "look", "arguments": {"what": "{1}"}}
PNG = base64.b64encode(picture("a tree")).decode()

every = pytest.mark.parametrize("protocol", PROTOCOLS)
both = pytest.mark.parametrize("stream", [False, True])


@every
@both
async def test_text_thoughts_parallel_calls_and_usage_arrive(protocol: str, stream: bool) -> None:
    step = {"reasoning": "Hm, {1}? Grüße 👋", "text": "Looking at {1}.", "chunks": 4, "calls": [CALL, CALL]}
    async with scripted_server({"go": [step]}) as server, talking(protocol, server) as talk:
        heard = await talk.ask([talk.user("@go left")], stream=stream)
    assert (heard.text, heard.thoughts) == ("Looking at left.", "Hm, left? Grüße 👋")
    assert [(call.name, call.arguments) for call in heard.calls] == [("look", '{"what":"left"}')] * 2
    assert heard.calls[0].id != heard.calls[1].id
    assert (heard.input > 20, heard.output > heard.reasoning > 0) == (True, True)


@every
@both
async def test_a_loop_of_tools_goes_through_the_script_with_the_reasoning_sent_back(
    protocol: str, stream: bool
) -> None:
    script = [
        {"reasoning": "First.", "calls": [CALL, CALL]},
        {"reasoning": "Second.", "text": "And once more.", "calls": [CALL]},
        {"reasoning": "Third.", "text": "Done with {1}."},
        {"text": "Again {1}."},
    ]
    async with scripted_server({"go": script}) as server, talking(protocol, server) as talk:
        messages = [talk.user("@go left")]
        seen: list[str] = []
        for _ in range(2):
            heard = await talk.ask(messages, stream=stream)
            seen += [call.id for call in heard.calls]
            messages += [*heard.history, *talk.results(heard.calls, "saw it")]
        heard = await talk.ask(messages, stream=stream)
        assert (heard.text, heard.calls) == ("Done with left.", [])
        messages += [*heard.history, talk.user("@go right")]
        again = await talk.ask(messages, stream=stream)
    assert len(set(seen)) == 3
    assert again.calls[0].arguments == '{"what":"right"}'


@every
async def test_a_picture_is_taken_and_one_that_is_no_base64_is_refused(protocol: str) -> None:
    async with scripted_server() as server, talking(protocol, server) as talk:
        assert (await talk.ask([talk.user("What is it?", PNG)], stream=True)).text == "Hello."
        if protocol != "gemini":  # its SDK encodes by itself
            with pytest.raises(talk.broken) as caught:
                await talk.ask([talk.user("What is it?", "no base64!")], stream=True)
            assert talk.status_of(caught.value) == 400


@every
@both
@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
async def test_statuses_become_the_errors_of_the_sdk(protocol: str, stream: bool, status: int) -> None:
    script = {"busy": [{"status": status, "times": 1, "text": "Now."}]}
    async with scripted_server(script) as server, talking(protocol, server) as talk:
        with pytest.raises(talk.broken) as caught:
            await talk.ask([talk.user("@busy")], stream=stream)
        assert talk.status_of(caught.value) == status
        assert "scripted failure" in str(caught.value)
        assert (await talk.ask([talk.user("@busy")], stream=stream)).text == "Now."


@every
@pytest.mark.parametrize(
    "odd",
    [
        {"crlf": True},
        {"split_utf8": True},
        {"duplicate_chunk": True},
        {"chunk_delay_ms": 1},
        {"first_delay_ms": 1},
        {"crlf": True, "split_utf8": True},
    ],
    ids=str,
)
async def test_odd_but_whole_streams_say_the_same(protocol: str, odd: dict[str, Any]) -> None:
    step = {"text": "Grüße 👋", "chunks": 4, "calls": [CALL], **odd}
    async with scripted_server({"odd": [step]}) as server, talking(protocol, server) as talk:
        for _ in range(2):  # the connection is good for another one
            heard = await talk.ask([talk.user("@odd x")], stream=True)
            assert heard.text == "Grüße 👋"
            assert [call.arguments for call in heard.calls] == ['{"what":"x"}']


@every
@both
async def test_a_cut_reply_is_an_error(protocol: str, stream: bool) -> None:
    script = {"cut": [{"text": "abc", "chunks": 3, "cut_after": 2}]}
    async with scripted_server(script) as server, talking(protocol, server) as talk:
        with pytest.raises(talk.broken):
            await talk.ask([talk.user("@cut")], stream=stream)


@every
@both
async def test_an_error_in_the_middle_of_a_stream_is_told_as_the_protocol_does(protocol: str, stream: bool) -> None:
    script = {"odd": [{"text": "abc", "chunks": 3, "error_event": 2}]}
    async with scripted_server(script) as server, talking(protocol, server) as talk:
        with pytest.raises(talk.broken, match="overloaded"):
            await talk.ask([talk.user("@odd")], stream=stream)


ENDS = {
    "chat": {"stop": "stop", "length": "length", "calls": "tool_calls", "blocked": "content_filter"},
    "responses": {
        "stop": "completed",
        "length": "max_output_tokens",
        "calls": "completed",
        "blocked": "content_filter",
    },
    "messages": {"stop": "end_turn", "length": "max_tokens", "calls": "tool_use", "blocked": "refusal"},
    "gemini": {"stop": "STOP", "length": "MAX_TOKENS", "calls": "STOP", "blocked": "blocked SAFETY"},
}


@every
@both
@pytest.mark.parametrize(
    ("end", "step"),
    [
        ("stop", {"text": "x"}),
        ("length", {"text": "x", "finish": "length"}),
        ("calls", {"calls": [CALL]}),
        ("blocked", {"text": "never said", "calls": [CALL], "blocked": True}),
    ],
)
async def test_every_end_has_its_name(protocol: str, stream: bool, end: str, step: dict[str, Any]) -> None:
    async with scripted_server({"go": [step]}) as server, talking(protocol, server) as talk:
        if protocol == "chat" and stream and end in {"length", "blocked"}:
            pytest.skip("OpenAI's own stream helper raises here; chunks are tested one by one")
        heard = await talk.ask([talk.user("@go x")], stream=stream)
    assert heard.finish == ENDS[protocol][end]
    if end == "blocked":
        assert (heard.text, heard.calls) == ("", [])


@every
@both
async def test_a_refusal_is_told_from_an_answer(protocol: str, stream: bool) -> None:
    script = {"no": [{"text": "I will not.", "refusal": True}]}
    async with scripted_server(script) as server, talking(protocol, server) as talk:
        heard = await talk.ask([talk.user("@no")], stream=stream)
    assert heard.refused == "I will not."


@every
async def test_what_a_conversation_said_before_is_counted_as_cached(protocol: str) -> None:
    async with scripted_server() as server, talking(protocol, server) as talk:
        messages = [talk.user("hi " * 100)]
        first = await talk.ask(messages, stream=True)
        messages += [*first.history, talk.user("and?")]
        second = await talk.ask(messages, stream=True)
    assert first.cached == 0
    assert 70 < second.cached < second.input


@every
async def test_usage_is_as_scripted(protocol: str) -> None:
    usage = {
        "prompt_tokens": 70,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 50},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    async with scripted_server({"go": [{"text": "x", "usage": usage}]}) as server, talking(protocol, server) as talk:
        heard = await talk.ask([talk.user("@go")], stream=True)
    assert (heard.input, heard.cached, heard.output, heard.reasoning) == (70, 50, 30, 20)


@every
async def test_results_and_calls_belong_together(protocol: str) -> None:
    async with (
        scripted_server({"go": [{"reasoning": "Hm.", "calls": [CALL, CALL]}]}) as server,
        talking(protocol, server) as talk,
    ):
        start = [talk.user("@go x")]
        heard = await talk.ask(start, stream=False)
        calls = [*start, *heard.history]
        wrong = {
            "no result": [*calls, talk.user("and?")],
            "one of two": [*calls, *talk.results(heard.calls[:1], "x")],
            "no call": [*start, *talk.results(heard.calls, "x")],
            "another's": [*calls, *talk.results([call._replace(id="call_other") for call in heard.calls], "x")],
            "twice": [*calls, *talk.results([*heard.calls, heard.calls[0]], "x")],
        }
        before = len(server.requests)
        for name, messages in wrong.items():
            with pytest.raises(talk.broken) as caught:
                await talk.ask(messages, stream=False)
            assert (name, talk.status_of(caught.value)) == (name, 400)
        assert len(server.requests) == before
        right = [*calls, *talk.results(heard.calls, "x")]
        assert (await talk.ask(right, stream=False)).calls


@every
async def test_a_shape_of_the_answer_is_checked_and_the_text_is_said_as_scripted(protocol: str) -> None:
    script = {"good": [{"text": '{"what":"x"}'}], "bad": [{"text": "no JSON"}]}
    async with scripted_server(script) as server, talking(protocol, server) as talk:
        assert json.loads((await talk.ask([talk.user("@good")], stream=False, schema=SCHEMA)).text) == {"what": "x"}
        assert (await talk.ask([talk.user("@bad")], stream=False, schema=SCHEMA)).text == "no JSON"
        with pytest.raises(talk.broken) as caught:
            await talk.ask([talk.user("@good")], stream=False, schema={"type": "wizard"})
        assert talk.status_of(caught.value) == 400


@every
async def test_whoever_leaves_a_stalled_stream_is_logged_as_gone(protocol: str) -> None:
    script = {"still": [{"text": "abc", "chunks": 3, "stall_after": 3}]}
    async with scripted_server(script) as server, talking(protocol, server) as talk:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await talk.ask([talk.user("@still")], stream=True)
        async with asyncio.timeout(5):
            while not server.requests[0].aborted:
                await asyncio.sleep(0)
