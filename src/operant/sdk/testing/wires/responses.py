"""The OpenAI responses protocol from the server's side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from operant.sdk.testing.script import Chosen, Made, calls_of, pieces_of
from operant.sdk.testing.wires.chat import DECLINED, Chat
from operant.sdk.testing.wires.responses_rules import check_kinds, check_rules
from operant.sdk.testing.wires.responses_shape import Body
from operant.sdk.testing.wires.rules import sealed, shaped
from operant.sdk.testing.wires.tokens import counted
from operant.sdk.testing.wires.wire import Answer, Json, Request, encode, event

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter", "max_output_tokens": "max_output_tokens"}


class Responses:
    """POST /v1/responses. It stores no responses, but knows before which calls it gave encrypted reasoning."""

    def __init__(self) -> None:
        self._chat = Chat()
        self._thought: dict[str, str] = {}

    def check(self, request: Request) -> None:
        """Refuse as OpenAI does."""
        typed = {**request.body, "input": check_kinds(request.body.get("input"))}
        check_rules(shaped(typed, Body), self._thought)

    def conversation(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Return the messages; items of one reply that follow each other are one."""
        if isinstance(body["input"], str):
            return [{"role": "user", "content": body["input"]}]
        found: list[Mapping[str, Any]] = []
        for item in cast("list[Json]", body["input"]):
            kind = item.get("type", "message")
            if kind == "function_call_output":
                found.append({"role": "tool"})
            elif kind == "message" and item["role"] != "assistant":
                found.append(item)
            elif not found or found[-1]["role"] != "assistant":
                found.append({"role": "assistant"})
        return found

    def streams(self, request: Request) -> bool:
        """Tell whether events are wanted."""
        return bool(request.body.get("stream"))

    def whole(self, answer: Answer) -> bytes:
        """Return a response."""
        return encode(self._ended(answer, self._items(answer)))

    def events(self, answer: Answer) -> list[bytes]:
        """Return the typed events of a response."""
        items = self._items(answer)
        made: list[Json] = [
            {"type": "response.created", "response": _response(answer)},
            {"type": "response.in_progress", "response": _response(answer)},
        ]
        for at, item in enumerate(items):
            made += _told(at, item, answer.step.chunks)
        if answer.step.duplicate_chunk:
            made.append(made[1])
        ended = self._ended(answer, items)
        made.append({"type": f"response.{ended['status']}", "response": ended})
        return [event(one["type"], one | {"sequence_number": at}) for at, one in enumerate(made)]

    def error(self, sentence: str, at: int) -> bytes:
        """Return the event of an error."""
        said = {"type": "error", "code": "server_error", "message": sentence, "param": None, "sequence_number": at}
        return event("error", said)

    def refusal(self, status: int, sentence: str) -> bytes:
        """Return an error body, which is the chat protocol's."""
        return self._chat.refusal(status, sentence)

    def _items(self, answer: Answer) -> list[Json]:
        """Return the items of a reply, and remember what must come back with its calls."""
        chosen, step = answer.chosen, answer.step
        if step.blocked:
            return []
        items: list[Json] = []
        seal = ""
        if step.reasoning:
            reasoning = _reasoning(answer)
            seal = reasoning.get("encrypted_content") or ""
            items.append(reasoning)
        if step.refusal or chosen.text:
            items.append(_message(chosen))
        for at, call in enumerate(calls_of(chosen)):
            items.append(_call(f"fc_{chosen.id}{at}", call))
            self._thought.pop(call.id, None)
            if seal:
                self._thought[call.id] = seal
        return items

    def _ended(self, answer: Answer, items: list[Json]) -> Json:
        """Return the response as it is at its end."""
        finish = "content_filter" if answer.step.blocked else answer.step.finish or ""
        ended = _response(answer) | {"status": "completed", "output": items, "usage": _usage(answer)}
        if finish == "failed":
            failed = {"code": "server_error", "message": "The server had an error."}
            return ended | {"status": "failed", "error": failed}
        if finish in _REASONS:
            return ended | {"status": "incomplete", "incomplete_details": {"reason": _REASONS[finish]}}
        return ended | {"completed_at": 2}


def _response(answer: Answer) -> Json:
    body = answer.request.body
    return {
        "id": f"resp_{answer.chosen.id}",
        "object": "response",
        "created_at": 1,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": answer.request.model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "store": body.get("store", True),
        "temperature": body.get("temperature"),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p"),
        "truncation": "disabled",
        "usage": None,
    }


def _reasoning(answer: Answer) -> Json:
    thoughts = answer.chosen.thoughts
    shown = [] if answer.step.redacted else [{"type": "summary_text", "text": thoughts}]
    item: Json = {"id": f"rs_{answer.chosen.id}", "type": "reasoning", "summary": shown}
    if "reasoning.encrypted_content" in (answer.request.body.get("include") or ()):
        item["encrypted_content"] = sealed(thoughts)
    return item


def _message(chosen: Chosen) -> Json:
    part: Json = {"type": "output_text", "text": chosen.text, "annotations": [], "logprobs": []}
    if chosen.step.refusal:
        part = {"type": "refusal", "refusal": chosen.text or DECLINED}
    status = "incomplete" if chosen.step.finish in _REASONS else "completed"
    return {"id": f"msg_{chosen.id}", "type": "message", "role": "assistant", "status": status, "content": [part]}


def _call(id: str, call: Made) -> Json:
    return {
        "id": id,
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _usage(answer: Answer) -> Json:
    tokens = counted(answer)
    usage: Json = {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": 0},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }
    return usage | tokens.own


def _told(at: int, item: Json, chunks: int) -> list[Json]:
    """Return the events of one item."""
    empty: dict[str, Json] = {
        "reasoning": {"summary": []},
        "message": {"content": [], "status": "in_progress"},
        "function_call": {"arguments": "", "status": "in_progress"},
    }
    inner = {"reasoning": _told_reasoning, "message": _told_message, "function_call": _told_call}[item["type"]]
    return [
        {"type": "response.output_item.added", "output_index": at, "item": item | empty[item["type"]]},
        *({**one, "output_index": at, "item_id": item["id"]} for one in inner(item, chunks)),
        {"type": "response.output_item.done", "output_index": at, "item": item},
    ]


def _told_reasoning(item: Json, chunks: int) -> list[Json]:
    made: list[Json] = []
    for at, part in enumerate(cast("list[Json]", item["summary"])):
        here = {"summary_index": at}
        made += [
            {"type": "response.reasoning_summary_part.added", **here, "part": {**part, "text": ""}},
            *(
                {"type": "response.reasoning_summary_text.delta", **here, "delta": piece}
                for piece in pieces_of(part["text"], chunks)
            ),
            {"type": "response.reasoning_summary_text.done", **here, "text": part["text"]},
            {"type": "response.reasoning_summary_part.done", **here, "part": part},
        ]
    return made


def _told_message(item: Json, chunks: int) -> list[Json]:
    part: Json = item["content"][0]
    here: Json = {"content_index": 0}
    declined = part["type"] == "refusal"
    name, field = ("response.refusal", "refusal") if declined else ("response.output_text", "text")
    more: Json = {} if declined else {"logprobs": []}
    return [
        {"type": "response.content_part.added", **here, "part": {**part, field: ""}},
        *({"type": f"{name}.delta", **here, "delta": piece, **more} for piece in pieces_of(part[field], chunks)),
        {"type": f"{name}.done", **here, field: part[field], **more},
        {"type": "response.content_part.done", **here, "part": part},
    ]


def _told_call(item: Json, chunks: int) -> list[Json]:
    arguments: str = item["arguments"]
    return [
        *({"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces_of(arguments, 2)),
        {"type": "response.function_call_arguments.done", "name": item["name"], "arguments": arguments},
    ]
