"""Our scripted model server, with the official OpenAI SDK as its judge."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from operant.sdk.testing.server import ScriptedServer, scripted_server, spawned_server

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


async def streamed(api: openai.AsyncOpenAI, text: str) -> str:
    said = ""
    async for chunk in await api.chat.completions.create(model="one", messages=user(text), stream=True):
        said += "".join(choice.delta.content or "" for choice in chunk.choices)
    return said


async def exchange(server: ScriptedServer, *requests: bytes) -> bytes:
    """Send bytes on one connection, and return everything that comes until the server closes it."""
    port = int(server.url.split(":")[2].removesuffix("/v1"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(requests))
    try:
        return await reader.read()
    finally:
        writer.close()


def http(method: str, path: str, body: Any = None) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"{method} {path} HTTP/1.1\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw


CLOSE = b"not http\r\n\r\n"  # is refused, and the connection closed
CHAT = "/v1/chat/completions"
MADE: Any = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ASKED: Any = {"role": "assistant", "tool_calls": [MADE]}
RESULT: Any = {"role": "tool", "tool_call_id": "c", "content": "saw it"}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        "hi",
        ["hi"],
        [{"role": "wizard", "content": "hi"}],
        [{"role": "user", "content": None}],
        [RESULT],
        [*user("hi"), ASKED],
        [*user("hi"), ASKED, *user("and?"), RESULT],
        [*user("hi"), ASKED, {**RESULT, "tool_call_id": "d"}],
        [*user("hi"), ASKED, RESULT, RESULT],
        [*user("hi"), {"role": "assistant", "tool_calls": [{"id": "c"}]}],
        [*user("hi"), {"role": "assistant", "tool_calls": [{"function": MADE["function"]}]}],
        [
            *user("hi"),
            {"role": "assistant", "tool_calls": [{**MADE, "function": {"name": "look", "arguments": {}}}]},
            RESULT,
        ],
    ],
)
async def test_what_openai_refuses_is_refused_in_its_shape_and_not_logged(messages: Any) -> None:
    async with scripted_server() as server, client(server) as api:
        with pytest.raises(openai.BadRequestError) as caught:
            await api.chat.completions.create(model="one", messages=messages)
        assert server.requests == []
    assert caught.value.type == "invalid_request_error"


async def test_answered_calls_are_accepted() -> None:
    async with scripted_server() as server, client(server) as api:
        reply = await api.chat.completions.create(model="one", messages=[*user("hi"), ASKED, RESULT])
        models = [model.id async for model in api.models.list()]
    assert reply.choices[0].message.content == "Hello."
    assert models == ["one"]


@pytest.mark.parametrize("raw", [b"[]", b"{", b'{"model": "\xff"}', b'{"messages": [{"role": "user", "content": ""}]}'])
async def test_a_body_that_is_no_request_is_refused(raw: bytes) -> None:
    async with scripted_server() as server:
        answer = await exchange(server, http("POST", CHAT, raw), CLOSE)
    assert answer.count(b"HTTP/1.1 400") == 2


async def test_requests_in_one_packet_are_answered_in_order_also_behind_a_slow_one() -> None:
    script = {"slow": [{"text": "first", "delay_ms": 20}], "fast": [{"text": "second"}]}
    bodies = [{"model": "one", "messages": user(text)} for text in ("@slow", "@fast")]
    async with scripted_server(script) as server:
        answer = await exchange(server, *(http("POST", CHAT, body) for body in bodies), CLOSE)
    assert 0 < answer.find(b"first") < answer.find(b"second") < answer.find(b"HTTP/1.1 400")


async def test_words_with_quotes_stay_json_and_consecutive_user_messages_are_one() -> None:
    async with scripted_server({"go": [{"calls": [CALL]}]}) as server, client(server) as api:
        reply = await api.chat.completions.create(model="one", messages=[*user('hey @you @go a"b'), *user("and more")])
    calls = reply.choices[0].message.tool_calls
    assert calls is not None
    assert json.loads(calls[0].function.arguments) == {"what": 'a"b'}  # type: ignore[union-attr]


async def test_ids_of_calls_depend_on_the_request_only() -> None:
    script = {"go": [{"calls": [CALL, CALL]}, {"calls": [CALL]}]}
    ids: list[list[str]] = []
    for _ in range(2):
        async with scripted_server(script) as server, client(server) as api:
            seen: list[str] = []
            for messages in (user("@go left"), [*user("@go left"), ASKED, RESULT]):
                reply = await api.chat.completions.create(model="one", messages=messages)
                seen += [call.id for call in reply.choices[0].message.tool_calls or ()]
            ids.append(seen)
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 3


async def test_what_two_requests_share_is_logged_and_counted_as_cached() -> None:
    more: list[Any] = [*user("hi " * 50), {"role": "assistant", "content": "Hello."}, *user("and?")]
    async with scripted_server() as server, client(server) as api:
        await api.chat.completions.create(model="one", messages=more[:1])
        reply = await api.chat.completions.create(model="one", messages=more)
        first, second = server.requests
    assert first.common_prefix == 0
    assert 150 < second.common_prefix < first.size
    assert (second.path, second.at >= first.at > 0) == (CHAT, True)
    assert reply.usage is not None
    assert reply.usage.prompt_tokens_details is not None
    assert reply.usage.prompt_tokens_details.cached_tokens == second.common_prefix // 4


@pytest.mark.parametrize(
    "fault", [{"cut_after": 0}, {"cut_after": 1}, {"cut_after": 99}, {"cut_after": 1, "delay_ms": 1}]
)
async def test_a_cut_reply_is_an_error_to_the_client_in_one_piece_too(fault: dict[str, Any]) -> None:
    async with scripted_server({"cut": [{"text": "abc", **fault}]}) as server, client(server) as api:
        with pytest.raises(openai.APIConnectionError):
            await api.chat.completions.create(model="one", messages=user("@cut"))


@pytest.mark.parametrize(
    "fault", [{"stall_after": 0}, {"stall_after": 2}, {"stall_after": 1, "delay_ms": 1}, {"hang": True}]
)
@pytest.mark.parametrize("stream", [True, False])
async def test_who_waits_for_nothing_and_leaves_is_logged_as_gone(fault: dict[str, Any], stream: bool) -> None:
    async with scripted_server({"still": [{"text": "abc", "chunks": 3, **fault}]}) as server, client(server) as api:
        impatient = api.with_options(timeout=0.2)
        with pytest.raises(openai.APIConnectionError):
            await (streamed(impatient, "@still") if stream else said(impatient, "@still"))
        async with asyncio.timeout(5):
            while not server.requests[0].aborted:
                await asyncio.sleep(0)


async def said(api: openai.AsyncOpenAI, text: str) -> str | None:
    reply = await api.chat.completions.create(model="one", messages=user(text))
    return reply.choices[0].message.content


async def test_a_server_that_ends_takes_its_connections_along_and_calls_nobody_gone() -> None:
    request = http("POST", CHAT, {"model": "one", "messages": user("@still")})
    script = {"still": [{"hang": True}]}
    async with asyncio.timeout(5), asyncio.TaskGroup() as group, scripted_server(script) as server:
        waiting = group.create_task(exchange(server, request))
        while not server.requests:
            await asyncio.sleep(0)
    assert waiting.result() == b""
    assert not server.requests[0].aborted


@pytest.mark.parametrize(
    "odd",
    [
        {"crlf": True},
        {"no_done": True},
        {"split_utf8": True},
        {"chunk_delay_ms": 1},
        {"first_delay_ms": 1},
        {"headers": {"x-a": "b"}},
    ],
)
async def test_odd_but_whole_streams_say_the_same_to_the_official_client(odd: dict[str, Any]) -> None:
    async with scripted_server({"odd": [{"text": "Grüße 👋", "chunks": 4, **odd}]}) as server, client(server) as api:
        assert await streamed(api, "@odd") == "Grüße 👋"
        assert await streamed(api, "@odd") == "Grüße 👋"  # the connection is good for another one


async def test_a_body_and_headers_are_sent_as_scripted_with_any_status() -> None:
    script = {"odd": [{"body": "<html>", "headers": {"Content-Type": "text/html"}}]}
    async with scripted_server(script) as server, client(server) as api:
        reply = await api.chat.completions.with_raw_response.create(model="one", messages=user("@odd"))
    assert (reply.status_code, reply.headers["content-type"], reply.text) == (200, "text/html", "<html>")


async def test_faults_end_after_their_times_and_begin_again_with_a_new_script() -> None:
    steps = [{"status": 500, "times": 1, "text": "Now.", "usage": {"prompt_tokens": 7}}]
    async with scripted_server({"go": steps}) as server, client(server) as api:
        for _ in range(2):
            with pytest.raises(openai.InternalServerError):
                await said(api, "@go")
            reply = await api.chat.completions.create(model="one", messages=user("@go"))
            assert reply.choices[0].message.content == "Now."
            assert reply.usage is not None
            assert reply.usage.prompt_tokens == 7
            server.script("go", steps)


async def test_scripts_and_the_log_are_reached_over_http() -> None:
    async with scripted_server() as server, client(server) as api:
        bad = await exchange(
            server, http("PUT", "/script/new", [{"txet": "1"}]), http("PUT", "/script/new", b"{"), CLOSE
        )
        await exchange(server, http("PUT", "/script/new", [{"text": "learned"}]), CLOSE)
        assert await said(api, "@new") == "learned"
        log = await exchange(server, http("GET", "/requests"), CLOSE)
        await exchange(server, http("DELETE", "/requests"), CLOSE)
        assert server.requests == []
    assert bad.count(b"not a script") == 2
    assert b'"path":"/v1/chat/completions"' in log


async def test_a_spawned_server_takes_scripts_longer_than_an_argument() -> None:
    long = "x" * 200_000
    with spawned_server({"go": [{"text": long}]}) as server:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as api:
            assert await said(api, "@go") == long


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, None])
def test_the_program_reads_a_script_and_ends_when_told(end: signal.Signals | None, tmp_path: Path) -> None:
    file = tmp_path / "scripts.json"
    file.write_text('{"go": [{"text": "read"}]}')
    command = [sys.executable, "-m", "operant.sdk.testing", "--port", "0", "--script", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as api:
            reply = api.chat.completions.create(model="one", messages=user("@go"))
        if end is None:
            process.stdin.close()
        else:
            process.send_signal(end)
        assert process.wait(timeout=10) == 0
    assert reply.choices[0].message.content == "read"
