"""`/v1/responses`: OpenAI's newer protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import msgspec
from aiohttp import web

from operant.ext.gateway.api import Call, Nothing, Route, need_read
from operant.ext.gateway.hub import Seen
from operant.ext.gateway.openai.asked import Asked, Reader, Said, call_of, need_list, spec_of, text_field, wrong
from operant.ext.gateway.openai.work import Progress, Work, need_talk, shown_name
from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.routes.chat import key_of
from operant.ext.gateway.streams import Stream
from operant.sdk import Host, Json, Record, Text, ToolCall, ToolSpec, Usage


class _Kept(Record):
    """A response that was given, and the session in which it was."""

    session: str
    response: Json


class Responses:
    """Answer OpenAI's responses protocol."""

    def __init__(self, host: Host, work: Work) -> None:
        self._host = host
        self._work = work
        self._reader = Reader(host)

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(
                "POST",
                "/v1/responses",
                self.create,
                "Answer; `previous_response_id` or `conversation` goes on with a session.",
                "openai",
                body=dict[str, Any],
                returns=Json,
                also={"text/event-stream": "Events of the responses protocol."},
            ),
            Route("GET", "/v1/responses/{response}", self.get, "Show a response again.", "openai", returns=Json),
        ]

    async def get(self, call: Call[Nothing, None]) -> Json:
        """Show a response again."""
        need_read(call.principal)
        return (await self._kept(call.path("response"))).response

    async def create(self, call: Call[Nothing, Json]) -> Json | web.StreamResponse:
        """Answer."""
        need_talk(call.principal)
        asked = await self._asked(call)
        progress, seen = await self._work.begin(call.client, asked, key_of(call.request), call.principal)
        made = _Made(self._host, asked, call.body)
        async with aclosing(seen):
            if asked.stream:
                return await self._stream(call, made, progress, seen)
            async for one in seen:
                progress.take(one)
                if progress.waiting:
                    break
        progress.outcome.need()
        return await self._done(made, progress)

    async def _stream(
        self, call: Call[Nothing, Json], made: _Made, progress: Progress, seen: AsyncGenerator[Seen, None]
    ) -> web.StreamResponse:
        first = await anext(seen)
        async with Stream(call.request) as stream:
            await _all(stream, made.opening())
            await _say(stream, made, progress.take(first))
            async for one in seen:
                await _say(stream, made, progress.take(one))
                if progress.waiting:
                    break
            try:
                progress.outcome.need()
            except Rejected as error:
                await _all(stream, made.failing(error.sentence))
            else:
                ended = await self._done(made, progress)
                await _all(stream, made.closing(progress, ended))
        return stream.response

    async def _done(self, made: _Made, progress: Progress) -> Json:
        response = made.response(progress)
        kept = _Kept(session=progress.session, response=response)
        await self._work.keep(response["id"], msgspec.json.encode(kept))
        return response

    async def _kept(self, id: str) -> _Kept:
        found = await self._work.kept(id) if id.startswith("resp_") else None
        if found is None:
            raise Rejected(404, f"There is no response {id[:80]!r}.", "They are kept for a month.", code="not_found")
        return msgspec.json.decode(found, type=_Kept)

    async def _asked(self, call: Call[Nothing, Json]) -> Asked:
        body = call.body
        previous = text_field(body, "previous_response_id")
        conversation: Any = body.get("conversation")
        session = text_field(cast("Json", conversation), "id") if isinstance(conversation, dict) else conversation or ""
        if previous and session:
            raise wrong("Give `previous_response_id` or `conversation`, not both.")
        if not isinstance(session, str):
            raise wrong("`conversation` must be a text or an object with an `id`.")
        if previous:
            session = (await self._kept(previous)).session
        given = body.get("input")
        items: list[Json] = (
            [{"role": "user", "content": given}] if isinstance(given, str) else need_list(given, "input")
        )
        said = [one for item in items if (one := await self._said(item)) is not None]
        system = [one for one in said if one.role in ("system", "developer")]
        words = [text_field(body, "instructions"), *(getattr(part, "text", "") for one in system for part in one.parts)]
        return Asked(
            agent=text_field(body, "model"),
            said=tuple(one for one in said if one not in system),
            instructions="\n\n".join(word for word in words if word),
            tools=_tools(body),
            session=session,
            previous=previous,
            stream=bool(body.get("stream")),
        )

    async def _said(self, item: Json) -> Said | None:
        kind = item.get("type", "message")
        if kind == "message":
            role = text_field(item, "role")
            if role not in ("system", "developer", "user", "assistant"):
                raise wrong(f"There is no role {role!r}.")
            return Said(role=role, parts=await self._reader.parts(item.get("content")))
        if kind == "function_call":
            return Said(role="assistant", parts=(call_of(text_field(item, "call_id"), item),))
        if kind == "function_call_output":
            given = item.get("output")
            parts = await self._reader.parts(given) if isinstance(given, list) else (Text(text=str(given or "")),)
            return Said(role="tool", parts=parts, call_id=text_field(item, "call_id"))
        if kind in ("reasoning", "item_reference"):
            return None
        raise wrong(f"Input of type {kind!r} is not understood.")


class _Made:
    """The response in the protocol's shape."""

    def __init__(self, host: Host, asked: Asked, body: Json) -> None:
        self.id = f"resp_{host.ids.new().replace('-', '')}"
        self._message = f"msg_{host.ids.new().replace('-', '')}"
        self._asked = asked
        self._body = body
        self._created = host.clock.now() // 1_000_000
        self._number = -1

    def response(self, progress: Progress | None = None, status: str = "completed") -> Json:
        """Return the response as it stands."""
        body = self._body
        conversation = {"id": progress.session} if progress and not self._asked.previous else None
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created,
            "status": status if progress or status == "failed" else "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "max_output_tokens": None,
            "metadata": body.get("metadata") or {},
            "model": self._asked.agent,
            "output": self._items(progress) if progress else [],
            "parallel_tool_calls": True,
            "previous_response_id": self._asked.previous or None,
            "conversation": conversation,
            "reasoning": {"effort": None, "summary": None},
            "store": True,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": body.get("tools") or [],
            "top_p": None,
            "truncation": "disabled",
            "usage": _usage(progress.outcome.usage) if progress else None,
        }

    def opening(self) -> list[Json]:
        """Return the events with which a stream begins."""
        item: Json = {
            "id": self._message,
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        part: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        return [
            self._event("response.created", response=self.response()),
            self._event("response.in_progress", response=self.response()),
            self._event("response.output_item.added", output_index=0, item=item),
            self._event(
                "response.content_part.added", output_index=0, item_id=self._message, content_index=0, part=part
            ),
        ]

    def delta(self, text: str) -> Json:
        """Return the event of a piece of text."""
        return self._event(
            "response.output_text.delta",
            output_index=0,
            item_id=self._message,
            content_index=0,
            delta=text,
            logprobs=[],
        )

    def closing(self, progress: Progress, ended: Json) -> list[Json]:
        """Return the events with which a stream ends."""
        message = _message(self._message, progress.text)
        where: Json = {"output_index": 0, "item_id": self._message, "content_index": 0}
        made = [
            self._event("response.output_text.done", **where, text=progress.text, logprobs=[]),
            self._event("response.content_part.done", **where, part=message["content"][0]),
            self._event("response.output_item.done", output_index=0, item=message),
        ]
        for at, item in enumerate((one for one in ended["output"] if one["type"] == "function_call"), 1):
            empty = {**item, "arguments": "", "status": "in_progress"}
            here: Json = {"output_index": at, "item_id": item["id"]}
            arguments = item["arguments"]
            made += [
                self._event("response.output_item.added", output_index=at, item=empty),
                self._event("response.function_call_arguments.delta", **here, delta=arguments),
                self._event("response.function_call_arguments.done", **here, name=item["name"], arguments=arguments),
                self._event("response.output_item.done", output_index=at, item=item),
            ]
        # The message was opened before anybody knew that it would stay empty, so it is part of the whole here.
        whole = (
            ended
            if any(one["type"] == "message" for one in ended["output"])
            else {**ended, "output": [message, *ended["output"]]}
        )
        return [*made, self._event("response.completed", response=whole)]

    def failing(self, sentence: str) -> list[Json]:
        """Return the event of a failure."""
        failed = {**self.response(status="failed"), "error": {"code": "server_error", "message": sentence}}
        return [self._event("response.failed", response=failed)]

    def _items(self, progress: Progress) -> list[Json]:
        items = [_message(self._message, progress.text)] if progress.text or not progress.calls else []
        return [*items, *map(_call, progress.calls)]

    def _event(self, kind: str, **fields: Any) -> Json:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}


async def _say(stream: Stream, made: _Made, text: str) -> None:
    if text:
        await _all(stream, [made.delta(text)])


async def _all(stream: Stream, events: list[Json]) -> None:
    for event in events:
        await stream.send(event, event["type"])


def _message(id: str, text: str) -> Json:
    part: Json = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def _call(call: ToolCall) -> Json:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": shown_name(call),
        "arguments": call.arguments,
    }


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _tools(body: Json) -> tuple[ToolSpec, ...]:
    if body.get("tool_choice") == "none":
        return ()
    tools = need_list(body.get("tools") or [], "tools")
    if any(tool.get("type") != "function" for tool in tools):
        raise wrong("Only functions can be tools here.", "The agent has tools of its own for everything else.")
    return tuple(spec_of(text_field(tool, "name"), tool) for tool in tools)
