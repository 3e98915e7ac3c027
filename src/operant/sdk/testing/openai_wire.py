"""The OpenAI chat protocol from the server's side: what is refused, and how a reply looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from operant.sdk.testing.script import Chosen, calls_of, filled

_encode = msgspec.json.encode


def fault(body: Mapping[str, Any]) -> str:
    """Say what OpenAI would refuse about a request; empty when nothing."""
    messages: Sequence[Mapping[str, Any]] = body.get("messages") or ()
    if not body.get("model"):
        return "you must provide a model parameter"
    if not messages:
        return "[] is too short - 'messages'"
    owed: list[str] = []
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in owed:
                return f"messages with role 'tool' must follow a message with 'tool_calls' (messages[{at}])"
            owed.remove(str(message["tool_call_id"]))
            continue
        if owed:
            return f"an assistant message with 'tool_calls' must be followed by tool messages for: {', '.join(owed)}"
        wrong = _message_fault(at, message)
        if wrong:
            return wrong
        owed = [str(call["id"]) for call in message.get("tool_calls") or ()]
    return f"tool calls without a result: {', '.join(owed)}" if owed else ""


def _message_fault(at: int, message: Mapping[str, Any]) -> str:
    role, calls = message.get("role"), message.get("tool_calls") or ()
    if role not in {"system", "developer", "user", "assistant"}:
        return f"Invalid value: {role!r} at messages[{at}].role"
    if role == "assistant" and not calls and not message.get("content"):
        return f"messages[{at}] has neither content nor tool_calls"
    if any(not isinstance(call["function"]["arguments"], str) for call in calls):
        return f"messages[{at}].tool_calls: arguments must be a string"
    return ""


def usage(chosen: Chosen, size: int, cached: int) -> dict[str, Any]:
    """Count tokens as four characters each."""
    words = len(chosen.step.text) + sum(len(arguments) for _, _, arguments in calls_of(chosen))
    output = max(1, words // 4)
    counted: dict[str, Any] = {
        "prompt_tokens": size // 4,
        "completion_tokens": output,
        "total_tokens": size // 4 + output,
        "prompt_tokens_details": {"cached_tokens": cached // 4},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    return {**counted, **(chosen.step.usage or {})}


def finish(chosen: Chosen) -> str:
    """Return the finish reason."""
    return chosen.step.finish or ("tool_calls" if chosen.step.calls else "stop")


def whole(chosen: Chosen, model: str, counted: Mapping[str, Any]) -> bytes:
    """Return a reply in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": filled(chosen.step.text, chosen.words) or None}
    if chosen.step.calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls_of(chosen)
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish(chosen), "logprobs": None}
    return _encode(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [choice],
            "usage": counted,
        }
    )


def chunks(chosen: Chosen, model: str, counted: Mapping[str, Any], with_usage: bool) -> list[bytes]:
    """Return the chunks of a stream, without what ends it."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if chosen.step.reasoning:
        deltas.append({"reasoning_content": chosen.step.reasoning})
    deltas += [{"content": piece} for piece in _pieces(filled(chosen.step.text, chosen.words), chosen.step.chunks)]
    for at, (id, name, arguments) in enumerate(calls_of(chosen)):
        half = len(arguments) // 2
        opened = {"index": at, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [opened]})
        for piece in (arguments[:half], arguments[half:]):
            deltas.append({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    made = [_chunk(model, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    made.append(_chunk(model, [{"index": 0, "delta": {}, "finish_reason": finish(chosen)}]))
    if with_usage:
        made.append(_chunk(model, [], counted))
    return made


def refusal(status: int, message: str) -> bytes:
    """Return an error body."""
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return _encode({"error": {"message": message, "type": kind, "param": None, "code": None}})


def _chunk(model: str, choices: list[dict[str, Any]], counted: Mapping[str, Any] | None = None) -> bytes:
    return _encode(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
            "choices": choices,
            "usage": counted,
        }
    )


def _pieces(text: str, count: int) -> list[str]:
    if not text:
        return []
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]
