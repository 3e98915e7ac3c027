"""What the real services refuse is refused here, in their own shape, and not logged."""

from __future__ import annotations

from typing import Any

import pytest

from operant.sdk.testing.server import scripted_server
from operant.sdk.testing.wires.rules import sealed
from tests.sdk.raw import CHAT, GEMINI, MESSAGES, RESPONSES, STREAM, post

OBJECT: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
HI: Any = {"role": "user", "content": "hi"}


def chat(*messages: Any, **more: Any) -> Any:
    return {"model": "one", "messages": list(messages) or [HI], **more}


def function(name: Any = "look", parameters: Any = OBJECT, **more: Any) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def shape(schema: Any, **more: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, **more}}


def shown(url: str) -> Any:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


@pytest.mark.parametrize(
    "body",
    [
        chat(tools=[function("no spaces")]),
        chat(tools=[function("")]),
        chat(tools=[function(), function()]),
        chat(tools=[function(parameters={"type": "string"})]),
        chat(tools=[function(parameters={"type": "object", "properties": {"a": {"type": "text"}}})]),
        chat(tools=[function(parameters={"type": "object", "properties": {"a": {"type": "array"}}})]),
        chat(tools=[function(parameters={"type": "object", "properties": []})]),
        chat(tools=[function(parameters={"type": "object", "required": "a"})]),
        chat(tools=[function(parameters={"type": "object"}, strict=True)]),
        chat(tools=[function(parameters={**OBJECT, "properties": {"a": {"type": "string"}}}, strict=True)]),
        chat(tools="look"),
        chat(shown("data:image/png;base64,???")),
        chat(shown("data:image/tiff;base64,aGk=")),
        chat(shown("file:///etc/passwd")),
        chat({"role": "user", "content": [{"type": "wizard", "wizard": {}}]}),
        chat({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "?"}}]}),
        chat({"role": "user", "content": [{"type": "file", "file": {"file_data": "data:application/pdf;base64,?"}}]}),
        chat(HI, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "https://a"}}]}),
        chat(response_format={"type": "wizard"}),
        chat(response_format={"type": "json_schema"}),
        chat(response_format=shape({"type": "wizard"})),
        chat(response_format=shape({"type": "object"}, strict=True)),
        chat(response_format={"type": "json_schema", "json_schema": {"schema": OBJECT}}),
    ],
)
async def test_chat_refuses(body: Any) -> None:
    async with scripted_server() as server:
        answer = await post(server, CHAT, body)
        assert server.requests == []
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")


CALL: Any = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "c", "output": "x"}
THOUGHT: Any = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed("hm")}


def items(*input: Any, **more: Any) -> Any:
    return {"model": "one", "input": list(input) or "hi", **more}


def said(role: str, *parts: Any) -> Any:
    return {"role": role, "content": list(parts)}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"input": "hi"}, "model"),
        ({"model": "one"}, "input"),
        ({"model": "one", "input": ""}, "input"),
        (items(wizard=1), "wizard"),
        (items(max_output_tokens=15), ">= 16"),
        (items(include=["wizard"]), "include"),
        (items(previous_response_id="resp_1"), "not found"),
        (items("hi"), "input"),
        (items({"type": "wizard"}), "Supported values"),
        (items({"role": "wizard", "content": "hi"}), "role"),
        (items({"role": "user", "content": ""}), "empty"),
        (items({"role": "user", "content": "hi", "wizard": 1}), "wizard"),
        (items(said("user", {"type": "output_text", "text": "hi"})), "output_text"),
        (items(HI, said("assistant", {"type": "input_text", "text": "hi"})), "input_text"),
        (items(said("user", {"type": "input_image", "image_url": "data:image/png;base64,?"})), "base64"),
        (items(said("user", {"type": "input_image"})), "image_url"),
        (items(said("user", {"type": "input_file", "file_data": "data:a/b;base64,aGk="})), "filename"),
        (items(said("user", {"type": "input_file", "filename": "a"})), "file_data"),
        (items(said("user", {"type": "input_file", "filename": "a", "file_data": "data:a/b;base64,?"})), "base64"),
        (items(HI, {**CALL, "id": "call_1"}, OUTPUT), "begins with 'fc'"),
        (items(HI, {"id": "rs_1", "role": "assistant", "content": "hi"}), "begins with 'msg'"),
        (items(HI, CALL), "No tool output found"),
        (items(HI, OUTPUT), "No tool call found"),
        (items(HI, CALL, OUTPUT, OUTPUT), "No tool call found"),
        (items(HI, CALL, CALL, OUTPUT), "Duplicate"),
        (items(HI, CALL, {**OUTPUT, "output": [{"type": "input_image", "image_url": "x"}]}), "image_url"),
        (items(HI, {**CALL, "arguments": {}}, OUTPUT), "arguments"),
        (items(HI, THOUGHT), "required following item"),
        (items(HI, THOUGHT, HI), "required following item"),
        (items(HI, {**THOUGHT, "encrypted_content": "aGk="}, CALL, OUTPUT), "could not be verified"),
        (items(HI, THOUGHT, CALL, OUTPUT, THOUGHT, {**CALL, "call_id": "d"}), "Duplicate item"),
        (items(tools=[{"type": "function", "name": "no spaces"}]), "pattern"),
        (items(tools=[{"type": "function"}]), "name"),
        (items(tools=[{"type": "function", "name": "a", "parameters": {"type": "text"}}]), "schema"),
        (items(tool_choice={"type": "function", "name": "b"}), "not found"),
        (items(text={"format": {"type": "wizard"}}), "wizard"),
        (items(text={"format": {"type": "json_schema", "name": "a", "schema": {"type": 1}}}), "schema"),
        (items(text={"format": {"type": "json_schema", "schema": OBJECT}}), "name"),
    ],
)
async def test_responses_refuses(body: Any, sentence: str) -> None:
    async with scripted_server() as server:
        answer = await post(server, RESPONSES, body)
        assert server.requests == []
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
    assert sentence in answer.sentence


async def test_responses_has_no_stored_reasoning() -> None:
    bare = {name: value for name, value in THOUGHT.items() if name != "encrypted_content"}
    async with scripted_server() as server:
        lost = await post(server, RESPONSES, items(HI, bare, CALL, OUTPUT, store=False))
        kept = await post(server, RESPONSES, items(HI, bare, CALL, OUTPUT))
    assert (lost.status, kept.status) == (404, 200)


USE: Any = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
RESULT: Any = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
TEXT: Any = {"type": "text", "text": "hi"}
THINKING: Any = {"type": "thinking", "thinking": "hm", "signature": sealed("hm")}
MARKED: Any = {**TEXT, "cache_control": {"type": "ephemeral"}}
ENABLED: Any = {"type": "enabled", "budget_tokens": 1024}


def block(*content: Any) -> Any:
    return {"role": "user", "content": list(content)}


def mine(*content: Any) -> Any:
    return {"role": "assistant", "content": list(content)}


def message(*messages: Any, **more: Any) -> Any:
    return {"model": "one", "max_tokens": 2000, "messages": list(messages) or [HI], **more}


def image(media_type: str = "image/png", data: str = "aGk=") -> Any:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def tool(name: str = "look", schema: Any = OBJECT, **more: Any) -> Any:
    return {"name": name, "input_schema": schema, **more}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"model": "one", "messages": [HI]}, "max_tokens"),
        (message(max_tokens=0), "max_tokens"),
        ({"model": "one", "max_tokens": 9, "messages": []}, "messages"),
        (message(wizard=1), "wizard"),
        (message({"role": "wizard", "content": "hi"}), "role"),
        (message({"role": "system", "content": "hi"}, HI), "top-level `system`"),
        (message({"role": "user", "content": ""}), "non-empty"),
        (message({"role": "user", "content": []}), "non-empty"),
        (message({"role": "user", "content": None}), "content"),
        (message(block({**TEXT, "text": ""})), "non-empty"),
        (message(block({**TEXT, "text": " \n"})), "non-whitespace"),
        (message(block({**MARKED, "text": ""})), "cache_control"),
        (message(block({**TEXT, "wizard": 1})), "wizard"),
        (message(block({"type": "wizard"})), "type"),
        (message(mine(TEXT), HI), "first message"),
        (message(HI, mine(TEXT)), "prefill"),
        (message(HI, mine(USE), HI), "without `tool_result`"),
        (message(HI, mine(USE), block(TEXT, RESULT)), "without `tool_result`"),
        (message(HI, mine(USE), block(RESULT, RESULT)), "single result"),
        (message(HI, mine(USE, USE), block(RESULT)), "unique"),
        (message(block(RESULT)), "unexpected `tool_use_id`"),
        (message(HI, mine(USE), block(RESULT), mine(TEXT), block(RESULT)), "unexpected `tool_use_id`"),
        (message(HI, mine({**USE, "id": "a b"}), block(RESULT)), "matching regex"),
        (message(HI, mine({**USE, "input": "{}"}), block(RESULT)), "input"),
        (message(block(USE)), "`assistant`"),
        (message(block(THINKING)), "`assistant`"),
        (message(HI, mine(RESULT), HI), "unexpected"),
        (message(HI, mine({**THINKING, "signature": "x"}, TEXT), HI), "Invalid `signature`"),
        (message(HI, mine({**THINKING, "thinking": "other"}, TEXT), HI), "Invalid `signature`"),
        (message(HI, mine({"type": "redacted_thinking", "data": "x"}, TEXT), HI), "Invalid `data`"),
        (message(HI, mine(USE), block(RESULT), thinking=ENABLED), "Expected `thinking`"),
        (message(thinking={"type": "enabled", "budget_tokens": 1023}), "1024"),
        (message(thinking={"type": "enabled"}), "budget_tokens"),
        (message(thinking={"type": "enabled", "budget_tokens": 2000}), "greater than"),
        (message(thinking=ENABLED, temperature=0.5), "temperature"),
        (message(thinking=ENABLED, tools=[tool()], tool_choice={"type": "any"}), "tool_choice"),
        (message(block(image(data="?"))), "base64"),
        (message(block(image("image/tiff"))), "image/tiff"),
        (message(block(image("application/pdf"))), "media_type"),
        (message(block(image(data=""))), "empty"),
        (message(HI, mine(USE), block({**RESULT, "content": [image(data="?")]})), "base64"),
        (message(tools=[tool("no spaces")]), "pattern"),
        (message(tools=[tool(), tool()]), "unique"),
        (message(tools=[tool(schema={"type": "array"})]), "object"),
        (message(tools=[tool(schema={**OBJECT, "anyOf": []})]), "anyOf"),
        (message(tools=[{"name": "look"}]), "input_schema"),
        (message(tools=[tool(schema={"type": "object"}, strict=True)]), "additionalProperties"),
        (message(tool_choice={"type": "auto"}), "providing tools"),
        (message(tools=[tool()], tool_choice={"type": "tool"}), "tool_choice.name"),
        (message(tools=[tool()], tool_choice={"type": "tool", "name": "b"}), "not found"),
        (message(block(*[MARKED] * 5)), "maximum of 4"),
        (
            message(block(MARKED), system=[MARKED] * 2, tools=[tool(cache_control={"type": "ephemeral"})] * 1)
            | {"cache_control": {"type": "ephemeral"}},
            "maximum of 4",
        ),
        (message(block(MARKED, {**TEXT, "cache_control": {"type": "ephemeral", "ttl": "1h"}})), "ttl"),
        (message(block({**TEXT, "cache_control": {"type": "forever"}})), "forever"),
        (message(system=[{"type": "text", "text": ""}]), "non-empty"),
        (message(output_config={"format": {"type": "json_schema"}}), "schema"),
        (message(output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}}), "additional"),
        (message(output_format={"type": "json_schema", "schema": {"type": "wizard"}}), "wizard"),
    ],
)
async def test_messages_refuses(body: Any, sentence: str) -> None:
    async with scripted_server() as server:
        answer = await post(server, MESSAGES, body)
        assert server.requests == []
    assert (answer.status, answer.json["type"]) == (400, "error")
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert sentence in answer.sentence


async def test_messages_wants_a_key_and_a_version() -> None:
    async with scripted_server() as server:
        nobody = await post(server, MESSAGES, message(), {"anthropic-version": "2023-06-01"})
        ageless = await post(server, MESSAGES, message(), {"x-api-key": "k"})
    assert (nobody.status, nobody.json["error"]["type"]) == (401, "authentication_error")
    assert (ageless.status, ageless.sentence) == (400, "anthropic-version: header is required")


def contents(*given: Any, **more: Any) -> Any:
    return {"contents": list(given) or [parts({"text": "hi"})], **more}


def parts(*given: Any, role: str = "user") -> Any:
    return {"role": role, "parts": list(given)}


def declared(name: str = "look", **more: Any) -> Any:
    return [{"functionDeclarations": [{"name": name, **more}]}]


ASK: Any = parts({"text": "hi"})
FUNCTION: Any = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": sealed("hm")}
UNSIGNED: Any = {"functionCall": {"name": "look", "args": {}}}
ANSWER: Any = {"functionResponse": {"name": "look", "response": {"output": "x"}}}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "contents"),
        (contents() | {"contents": []}, "contents"),
        (contents(wizard=1), "wizard"),
        (contents(parts({"text": "hi"}, role="wizard")), "valid role"),
        (contents(parts()), "must not be empty"),
        (contents(parts({})), "oneof"),
        (contents(parts({"text": "hi", "inlineData": {"mimeType": "a/b", "data": "aGk="}})), "oneof"),
        (contents(parts({"text": "hi", "wizard": 1})), "wizard"),
        (contents(parts({"inlineData": {"mimeType": "image/png", "data": "?"}})), "base64"),
        (contents(parts({"inlineData": {"mimeType": "png", "data": "aGk="}})), "MIME"),
        (contents(parts(FUNCTION)), "role 'model'"),
        (contents(ASK, parts(ANSWER, role="model"), ASK), "role 'user'"),
        (contents(parts(FUNCTION, role="model"), parts(ANSWER)), "function call turn comes"),
        (contents(ASK, parts(FUNCTION, role="model"), ASK), "number of function response parts"),
        (contents(ASK, parts(FUNCTION, UNSIGNED, role="model"), parts(ANSWER)), "number of function response parts"),
        (contents(ASK, parts({"text": "x"}, role="model"), parts(ANSWER)), "function response turn comes"),
        (contents(ASK, parts({"text": "x"}, role="model")), "end with a user role"),
        (
            contents(ASK, parts(FUNCTION, role="model"), parts({"functionResponse": {"name": "b", "response": {}}})),
            "names",
        ),
        (
            contents(
                ASK,
                parts(FUNCTION, role="model"),
                parts({"functionResponse": {**ANSWER["functionResponse"], "id": "z"}}),
            ),
            "id z",
        ),
        (contents(ASK, parts(FUNCTION, role="model"), parts({"functionResponse": {"name": "look"}})), "response"),
        (
            contents(
                ASK, parts(FUNCTION, role="model"), parts({"functionResponse": {"name": "look", "response": "x"}})
            ),
            "response",
        ),
        (contents(ASK, parts(UNSIGNED, role="model"), parts(ANSWER)), "missing a thought_signature"),
        (contents(ASK, parts({**FUNCTION, "thoughtSignature": "aGk="}, role="model"), parts(ANSWER)), "Corrupted"),
        (contents(tools=declared("no spaces")), "pattern"),
        (contents(tools=declared("1st")), "pattern"),
        (contents(tools=[*declared(), *declared()]), "unique"),
        (contents(tools=declared(parameters={"type": "object", "$schema": "x"})), "Unknown name"),
        (contents(tools=declared(parameters={"type": "wizard"})), "wizard"),
        (contents(tools=declared(parameters={"type": ["string", "null"]})), "type"),
        (contents(tools=declared(parameters={"type": "ARRAY"})), "items"),
        (contents(tools=declared(parameters={"type": "OBJECT", "required": ["a"]})), "not defined"),
        (contents(tools=declared(parameters={"type": "INTEGER", "enum": [1]})), "enum"),
        (contents(tools=declared(parameters=OBJECT, parametersJsonSchema=OBJECT)), "exclude"),
        (contents(tools=declared(parametersJsonSchema={"type": "wizard"})), "wizard"),
        (contents(systemInstruction={"parts": []}), "system_instruction"),
        (contents(generationConfig={"responseSchema": {"type": "STRING"}}), "response_mime_type"),
        (
            contents(generationConfig={"responseMimeType": "application/json", "responseSchema": {"type": "x"}}),
            "response_schema",
        ),
        (contents(generationConfig={"wizard": 1}), "wizard"),
        (contents(generationConfig={"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "low"}}), "only one"),
        (contents(toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}}), "declared"),
        (contents(toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["b"]}}), "ANY"),
    ],
)
async def test_gemini_refuses(body: Any, sentence: str) -> None:
    async with scripted_server() as server:
        answer = await post(server, GEMINI, body)
        assert server.requests == []
    assert (answer.status, answer.json["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert sentence in answer.sentence


async def test_gemini_wants_a_key_and_sse() -> None:
    async with scripted_server() as server:
        nobody = await post(server, GEMINI, contents(), {})
        lines = await post(server, STREAM.partition("?")[0], contents(), {"x-goog-api-key": "k"})
    assert (nobody.status, nobody.json["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert (lines.status, "alt=sse" in lines.sentence) == (400, True)


async def test_gemini_wants_signatures_of_the_current_turn_only_and_none_of_older_models() -> None:
    old = [ASK, parts(UNSIGNED, role="model"), parts(ANSWER), parts({"text": "x"}, role="model"), ASK]
    second = [ASK, parts(FUNCTION, UNSIGNED, role="model"), parts(ANSWER, ANSWER)]
    foreign = {**UNSIGNED, "thoughtSignature": "skip_thought_signature_validator"}
    now = contents(ASK, parts(UNSIGNED, role="model"), parts(ANSWER))
    async with scripted_server() as server:
        for body in (contents(*old), contents(*second), contents(ASK, parts(foreign, role="model"), parts(ANSWER))):
            assert (await post(server, GEMINI, body)).status == 200
        older = GEMINI.replace("one", "gemini-2.5-flash")
        assert (await post(server, older, now, {"x-goog-api-key": "k"})).status == 200


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES, GEMINI, "/v1/embeddings", "/v1/images/generations"])
@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"model": "\xff"}', b'{"model": 1}', b"{}"])
async def test_what_is_no_request_is_refused_everywhere(path: str, raw: bytes) -> None:
    async with scripted_server() as server:
        answer = await post(server, path, raw)
    assert answer.status == 400
    assert answer.sentence


async def test_what_is_right_is_taken() -> None:
    rights = [
        (CHAT, chat(shown("data:image/png;base64,aGk="), tools=[function()], response_format=shape(OBJECT))),
        (RESPONSES, items(HI, THOUGHT, CALL, OUTPUT, {"role": "assistant", "content": "x"}, HI)),
        (RESPONSES, items(said("user", {"type": "input_image", "image_url": "https://a.example/b.png"}))),
        (RESPONSES, items(HI, THOUGHT, CALL, {**CALL, "call_id": "d"}, OUTPUT, {**OUTPUT, "call_id": "d"})),
        (MESSAGES, message(HI, mine(THINKING, USE), block(RESULT, TEXT), thinking=ENABLED)),
        (MESSAGES, message(HI, mine({**THINKING, "thinking": ""}, USE), block({**RESULT, "content": [image()]}))),
        (MESSAGES, message(HI, HI, mine(TEXT), mine(USE), block(RESULT), HI, system=[MARKED], tools=[tool()])),
        (MESSAGES, message(block(MARKED, MARKED), tools=[tool(), {"type": "bash_20250124", "name": "bash"}])),
        (GEMINI, contents(ASK, parts(FUNCTION, role="model"), parts(ANSWER), systemInstruction=parts({"text": "x"}))),
        (GEMINI, contents(tools=declared(parameters={"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}))),
    ]
    async with scripted_server() as server:
        for path, body in rights:
            answer = await post(server, path, body)
            assert (answer.status, body) == (200, body)
        assert len(server.requests) == len(rights)
