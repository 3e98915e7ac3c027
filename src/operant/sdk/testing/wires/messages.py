"""The Anthropic messages protocol from the server's side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from operant.sdk.testing.script import Chosen, Made, calls_of, pieces_of
from operant.sdk.testing.wires.messages_cache import Caches
from operant.sdk.testing.wires.messages_rules import check_rules
from operant.sdk.testing.wires.messages_shape import Body
from operant.sdk.testing.wires.rules import sealed, shaped
from operant.sdk.testing.wires.tokens import counted
from operant.sdk.testing.wires.wire import Answer, Json, Request, Wrong, encode, event

_STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "context": "model_context_window_exceeded",
}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    503: "overloaded_error",
    529: "overloaded_error",
}


class Messages:
    """POST /v1/messages."""

    def __init__(self) -> None:
        self._caches = Caches()

    def check(self, request: Request) -> None:
        """Refuse as Anthropic does."""
        if not request.header("x-api-key") and not request.header("authorization").startswith("Bearer "):
            raise Wrong("x-api-key header is required", 401)
        if not request.header("anthropic-version"):
            raise Wrong("anthropic-version: header is required")
        check_rules(shaped(request.body, Body))

    def conversation(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Return the messages; those that bring results are the tools', what is said beside them is the user's."""
        found: list[Mapping[str, Any]] = []
        for message in body["messages"]:
            content: Any = message["content"]
            if isinstance(content, str) or message["role"] != "user":
                found.append(message)
                continue
            parts = cast("list[Json]", content)
            said = [_unmarked(part) for part in parts if part["type"] != "tool_result"]
            if len(said) < len(parts):
                found.append({"role": "tool"})
            if said:
                found.append({"role": "user", "content": said})
        return found

    def streams(self, request: Request) -> bool:
        """Tell whether events are wanted."""
        return bool(request.body.get("stream"))

    def whole(self, answer: Answer) -> bytes:
        """Return a message."""
        content = [block for block, _ in _blocks(answer)]
        return encode(_message(answer) | {"content": content, **_stopped(answer.chosen), "usage": self._usage(answer)})

    def events(self, answer: Answer) -> list[bytes]:
        """Return the events of a message."""
        usage = self._usage(answer)
        started = _message(answer) | {"usage": usage | {"output_tokens": 1}}
        made = [event("message_start", {"type": "message_start", "message": started}), _ping()]
        for at, (block, deltas) in enumerate(_blocks(answer)):
            start = {"type": "content_block_start", "index": at, "content_block": _opening(block)}
            made.append(event("content_block_start", start))
            made += [
                event("content_block_delta", {"type": "content_block_delta", "index": at, "delta": delta})
                for delta in deltas
            ]
            made.append(event("content_block_stop", {"type": "content_block_stop", "index": at}))
        if answer.step.duplicate_chunk:
            made += [_ping(), _ping()]
        ended = {"type": "message_delta", "delta": _stopped(answer.chosen), "usage": usage}
        return [*made, event("message_delta", ended), event("message_stop", {"type": "message_stop"})]

    def error(self, sentence: str, at: int) -> bytes:
        """Return the event of an overload."""
        return event("error", _error("overloaded_error", sentence))

    def refusal(self, status: int, sentence: str) -> bytes:
        """Return an error body."""
        kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return encode(_error(kind, sentence) | {"request_id": "req_scripted"})

    def _usage(self, answer: Answer) -> Json:
        """Count what was read from the cache, what was written to it, and what was neither."""
        tokens = counted(answer)
        read, written = self._caches.met(answer.request.body, answer.request.size)
        told = answer.step.usage or {}
        if "prompt_tokens" in told:  # what the script says is the whole truth
            read, written = tokens.cached if "prompt_tokens_details" in told else 0, 0
        usage: Json = {
            "input_tokens": max(0, tokens.input - read - written),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": tokens.output,
            "output_tokens_details": {"thinking_tokens": tokens.reasoning},
            "service_tier": "standard",
        }
        return usage | tokens.own


def _unmarked(part: Json) -> Json:
    """Return a block without its cache marker: it moves, and what was said stays what was said."""
    return {name: value for name, value in part.items() if name != "cache_control"}


def _error(kind: str, sentence: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": sentence}}


def _ping() -> bytes:
    return event("ping", {"type": "ping"})


def _message(answer: Answer) -> Json:
    return {
        "id": f"msg_{answer.chosen.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _stopped(chosen: Chosen) -> Json:
    step = chosen.step
    if step.refusal or step.blocked:
        return {
            "stop_reason": "refusal",
            "stop_sequence": None,
            "stop_details": {"type": "refusal", "category": "cyber" if step.blocked else None, "explanation": None},
        }
    finish = step.finish or ("tool_calls" if step.calls else "stop")
    return {"stop_reason": _STOPS.get(finish, finish), "stop_sequence": None}


def _blocks(answer: Answer) -> list[tuple[Json, list[Json]]]:
    """Return the blocks of a reply, each with the deltas in which it comes."""
    chosen, step = answer.chosen, answer.step
    if step.blocked:
        return []
    found = [_thinking(answer)] if step.reasoning and _thinks(answer) else []
    if chosen.text:
        deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in pieces_of(chosen.text, step.chunks)]
        found.append(({"type": "text", "text": chosen.text}, deltas))
    return found + [_use(call) for call in calls_of(chosen, "toolu")]


def _thinks(answer: Answer) -> bool:
    return _asked(answer).get("type") != "disabled"


def _asked(answer: Answer) -> Json:
    """Return what is asked about thinking."""
    return answer.request.body.get("thinking") or {}


def _thinking(answer: Answer) -> tuple[Json, list[Json]]:
    thoughts = answer.chosen.thoughts
    signature = sealed(thoughts)
    if answer.step.redacted:
        return {"type": "redacted_thinking", "data": signature}, []
    if _asked(answer).get("display") == "omitted":
        thoughts = ""
    deltas: list[Json] = [
        {"type": "thinking_delta", "thinking": piece} for piece in pieces_of(thoughts, answer.step.chunks)
    ]
    deltas.append({"type": "signature_delta", "signature": signature})
    return {"type": "thinking", "thinking": thoughts, "signature": signature}, deltas


def _use(call: Made) -> tuple[Json, list[Json]]:
    half = len(call.arguments) // 2
    pieces = ("", call.arguments[:half], call.arguments[half:])
    block = {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}
    return block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _input(arguments: str) -> Json:
    """Return arguments as an object; in one piece there is no other way to send those that are none."""
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        return {"INVALID_JSON": arguments}


def _opening(block: Json) -> Json:
    """Return a block as it is before its deltas."""
    empty: dict[str, Json] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return block | empty.get(block["type"], {})
