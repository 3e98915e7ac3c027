"""The OpenAI chat protocol from the server's side: what is refused, and how a reply looks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from operant.sdk.testing.script import Chosen, calls_of, pieces_of
from operant.sdk.testing.wires.rules import (
    check_base64,
    check_closed,
    check_names,
    check_parameters,
    check_picture_url,
    check_schema,
    names_of,
    shaped,
)
from operant.sdk.testing.wires.tokens import counted
from operant.sdk.testing.wires.wire import Answer, Json, Request, Wrong, data, encode

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DECLINED = "I cannot help with that."


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct):
    id: str
    function: _Function


class _Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None

    def __post_init__(self) -> None:
        if self.content is None and self.role in {"system", "developer", "user", "tool"}:
            raise ValueError(f"expected a string or parts as the content of role '{self.role}', got null")


class _Options(msgspec.Struct):
    include_usage: bool | None = None


class _Tool(msgspec.Struct):
    type: str
    function: dict[str, Any] | None = None


class _Shape(msgspec.Struct):
    """The types a chat request must have before anybody looks at what it says."""

    model: str = ""
    messages: list[_Message] = []
    stream: bool | None = None
    stream_options: _Options | None = None
    tools: Any = None
    response_format: dict[str, Any] | None = None


class Chat:
    """POST /v1/chat/completions."""

    def __init__(self) -> None:
        self._tools: Any = None

    def check(self, request: Request) -> None:
        """Refuse as OpenAI does."""
        body = shaped(request.body, _Shape)
        if not body.model:
            raise Wrong("you must provide a model parameter")
        if not body.messages:
            raise Wrong("[] is too short - 'messages'")
        _check_pairs(body.messages)
        if body.tools != self._tools:  # the same tools as before are as good as before, and this path is measured
            tools = shaped(body.tools or [], list[_Tool])
            check_tools([tool.function or {} for tool in tools if tool.type == "function"])
            self._tools = body.tools
        if body.response_format is not None:
            _check_format(body.response_format)

    def conversation(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Return the messages: they are as `choose` wants them."""
        return body["messages"]

    def streams(self, request: Request) -> bool:
        """Tell whether chunks are wanted."""
        return bool(request.body.get("stream"))

    def whole(self, answer: Answer) -> bytes:
        """Return a reply in one piece."""
        chosen, step = answer.chosen, answer.step
        message: Json = {"role": "assistant", "content": _spoken(chosen) or None}
        if step.refusal:
            message |= {"content": None, "refusal": chosen.text or DECLINED}
        if step.reasoning and not step.redacted:
            message["reasoning_content"] = chosen.thoughts
        if step.calls and not step.blocked:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id, name, arguments in calls_of(chosen)
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish(chosen), "logprobs": None}
        return encode(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": answer.request.model,
                "choices": [choice],
                "usage": _usage(answer),
            }
        )

    def events(self, answer: Answer) -> list[bytes]:
        """Return the chunks, and what ends them."""
        chosen, model = answer.chosen, answer.request.model
        made = [_chunk(model, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in _deltas(chosen)]
        made.append(_chunk(model, [{"index": 0, "delta": {}, "finish_reason": _finish(chosen)}]))
        options: Json = answer.request.body.get("stream_options") or {}
        if options.get("include_usage"):
            made.append(_chunk(model, [], _usage(answer)))
        if answer.step.duplicate_chunk:
            made.append(made[-1])
        return [*made, b"data: [DONE]\n\n"]

    def error(self, sentence: str, at: int) -> bytes:
        """Return an error in place of a chunk."""
        return data({"error": _error(503, sentence)})

    def refusal(self, status: int, sentence: str) -> bytes:
        """Return an error body."""
        return encode({"error": _error(status, sentence)})


def _error(status: int, sentence: str) -> Json:
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"message": sentence, "type": kind, "param": None, "code": None}


def check_tools(tools: Sequence[Mapping[str, Any]]) -> None:
    """Refuse tools with bad names or schemas; a tool may do without parameters."""
    check_names(names_of(tools), NAME)
    for tool in tools:
        parameters, where = tool.get("parameters"), f"function '{tool['name']}'"
        if parameters is not None:
            check_parameters(parameters, where)
        if tool.get("strict"):
            check_closed(parameters, where, all_required=True)


def check_answer_schema(asked: Mapping[str, Any], where: str) -> None:
    """Refuse a demanded shape that has no name, or no schema."""
    if not isinstance(asked.get("name"), str) or not NAME.fullmatch(asked["name"]):
        raise Wrong(f"Missing or malformed parameter: '{where}.name'.")
    schema = asked.get("schema")
    check_schema(schema, f"response_format '{asked['name']}'")
    if asked.get("strict"):
        check_closed(schema, f"response_format '{asked['name']}'", all_required=True)


def _check_format(asked: Json) -> None:
    kind = asked.get("type")
    if kind not in {"text", "json_object", "json_schema"}:
        raise Wrong(f"Invalid value: {kind!r}. Supported values are: 'text', 'json_object' and 'json_schema'.")
    if kind == "json_schema":
        inner = asked.get("json_schema")
        if not isinstance(inner, dict):
            raise Wrong("Missing required parameter: 'response_format.json_schema'.")
        check_answer_schema(cast(Json, inner), "response_format.json_schema")


def _check_pairs(messages: Sequence[_Message]) -> None:
    """Refuse results without calls, and calls without results."""
    owed: list[str] = []
    for at, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in owed:
                raise Wrong(f"messages with role 'tool' must follow a message with 'tool_calls' (messages[{at}])")
            owed.remove(message.tool_call_id)
            continue
        if owed:
            missing = ", ".join(owed)
            raise Wrong(f"an assistant message with 'tool_calls' must be followed by tool messages for: {missing}")
        _check_message(at, message)
        owed = [call.id for call in message.tool_calls or ()]
    if owed:
        raise Wrong(f"tool calls without a result: {', '.join(owed)}")


def _check_message(at: int, message: _Message) -> None:
    if message.role not in {"system", "developer", "user", "assistant"}:
        raise Wrong(f"Invalid value: {message.role!r} at messages[{at}].role")
    if message.role == "assistant" and not message.tool_calls and not message.content:
        raise Wrong(f"messages[{at}] has neither content nor tool_calls")
    if isinstance(message.content, list):
        for number, part in enumerate(message.content):
            _check_part(part, f"messages[{at}].content[{number}]", message.role)


def _check_part(part: Json, where: str, role: str) -> None:
    kind = part.get("type")
    inner: Any = part.get(kind) if isinstance(kind, str) else None
    if kind in {"text", "refusal"} and isinstance(inner, str):
        return None
    if role != "user" or not isinstance(inner, dict):
        raise Wrong(f"Invalid value: {kind!r} at {where}.type")
    found = cast(Json, inner)
    if kind == "image_url":
        return check_picture_url(str(found.get("url", "")), f"{where}.image_url.url")
    if kind == "input_audio":
        check_base64(str(found.get("data", "")), f"{where}.input_audio.data")
    elif kind == "file":
        check_base64(str(found.get("file_data", "")).partition(";base64,")[2], f"{where}.file.file_data")
    else:
        raise Wrong(f"Invalid value: {kind!r} at {where}.type")
    return None


def _spoken(chosen: Chosen) -> str:
    return "" if chosen.step.blocked or chosen.step.refusal else chosen.text


def _finish(chosen: Chosen) -> str:
    if chosen.step.blocked:
        return "content_filter"
    return chosen.step.finish or ("tool_calls" if chosen.step.calls else "stop")


def _usage(answer: Answer) -> Json:
    tokens = counted(answer)
    usage: Json = {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }
    return {**usage, **(answer.step.usage or {})}


def _deltas(chosen: Chosen) -> list[Json]:
    step = chosen.step
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if step.blocked:
        return deltas
    if step.reasoning and not step.redacted:
        deltas.append({"reasoning_content": chosen.thoughts})
    field, said = ("refusal", chosen.text or DECLINED) if step.refusal else ("content", chosen.text)
    deltas += [{field: piece} for piece in pieces_of(said, step.chunks)]
    for at, (id, name, arguments) in enumerate(calls_of(chosen)):
        half = len(arguments) // 2
        deltas.append(
            {"tool_calls": [{"index": at, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}
        )
        for piece in (arguments[:half], arguments[half:]):
            deltas.append({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    return deltas


def _chunk(model: str, choices: list[Json], usage: Json | None = None) -> bytes:
    return data(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
            "choices": choices,
            "usage": usage,
        }
    )
