"""`/v1/chat/completions` and `/v1/models`: an agent is a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from aiohttp import web

from operant.ext.gateway.api import Call, Nothing, Route
from operant.ext.gateway.hub import Seen
from operant.ext.gateway.openai.asked import Asked, Reader, Said, call_of, need_list, spec_of, text_field, wrong
from operant.ext.gateway.openai.work import Progress, Work, need_talk, shown_name
from operant.ext.gateway.problem import Rejected
from operant.ext.gateway.routes.chat import key_of
from operant.ext.gateway.streams import Stream
from operant.sdk import Agent, AgentGet, AgentList, Delta, Host, Json, Part, ToolSpec, Usage

_SESSION = "X-Operant-Session"


class Completions:
    """Answer OpenAI's chat protocol."""

    def __init__(self, host: Host, work: Work) -> None:
        self._host = host
        self._work = work
        self._reader = Reader(host)

    def routes(self) -> list[Route]:
        """Return the routes."""
        stream = {"text/event-stream": "Chunks of the chat protocol, then [DONE]."}
        return [
            Route("GET", "/v1/models", self.models, "List the agents, as models.", "openai", returns=Json),
            Route("GET", "/v1/models/{model}", self.model, "Show one agent, as a model.", "openai", returns=Json),
            Route(
                "POST",
                "/v1/chat/completions",
                self.create,
                "Answer a conversation; the header X-Operant-Session names the session to use.",
                "openai",
                body=dict[str, Any],
                returns=Json,
                also=stream,
            ),
        ]

    async def models(self, call: Call[Nothing, None]) -> Json:
        """List agents."""
        return {"object": "list", "data": [_model(agent) for agent in await call.client.call(AgentList())]}

    async def model(self, call: Call[Nothing, None]) -> Json:
        """Show an agent."""
        return _model(await call.client.call(AgentGet(agent=call.path("model"))))

    async def create(self, call: Call[Nothing, Json]) -> Json | web.StreamResponse:
        """Answer a conversation."""
        need_talk(call.principal)
        asked = await self._asked(call)
        progress, seen = await self._work.begin(call.client, asked, key_of(call.request), call.principal)
        made = _Made(f"chatcmpl-{self._host.ids.new()}", self._host.clock.now() // 1_000_000, asked.agent)
        async with aclosing(seen):
            if asked.stream:
                return await self._stream(call, asked, made, progress, seen)
            async for one in seen:
                progress.take(one)
                if progress.waiting:
                    break
        progress.outcome.need()
        await self._work.remember(asked, progress)
        return made.whole(progress)

    async def _stream(
        self, call: Call[Nothing, Json], asked: Asked, made: _Made, progress: Progress, seen: AsyncGenerator[Seen, None]
    ) -> web.StreamResponse:
        first = await anext(seen)
        async with Stream(call.request) as stream:
            await stream.send(made.chunk({"role": "assistant", "content": ""}))
            async for piece in _pieces(progress, first, seen):
                await stream.send(made.chunk(piece))
            await self._work.remember(asked, progress)
            failed = _failure(progress)
            if failed:
                await stream.send(failed)
            else:
                await stream.all(made.ending(progress, asked.with_usage))
            await stream.write(b"data: [DONE]\n\n")
        return stream.response

    async def _asked(self, call: Call[Nothing, Json]) -> Asked:
        body = call.body
        if body.get("n") not in (None, 1):
            raise wrong("One answer is given, not several.", "Leave out `n`.")
        messages = need_list(body.get("messages"), "messages")
        if not messages:
            raise wrong("`messages` is empty.")
        read = [await self._said(message) for message in messages]
        told = [one for one in read if one.role not in ("system", "developer")]
        instructions = "\n\n".join(
            getattr(part, "text", "") for one in read if one.role in ("system", "developer") for part in one.parts
        )
        options = body.get("stream_options")
        return Asked(
            agent=text_field(body, "model"),
            said=tuple(told),
            instructions=instructions,
            tools=_tools(body),
            session=call.request.headers.get(_SESSION, ""),
            stream=bool(body.get("stream")),
            with_usage=isinstance(options, dict) and bool(cast("Json", options).get("include_usage")),
        )

    async def _said(self, message: Json) -> Said:
        role = text_field(message, "role")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise wrong(f"There is no role {role!r}.", "There are system, developer, user, assistant and tool.")
        parts: tuple[Part, ...] = await self._reader.parts(message.get("content"))
        calls = need_list(message.get("tool_calls") or [], "tool_calls")
        made = tuple(call_of(text_field(one, "id"), cast("Json", one.get("function") or {})) for one in calls)
        return Said(role=role, parts=(*parts, *made), call_id=text_field(message, "tool_call_id"))


class _Made:
    """The answer in the protocol's shape."""

    def __init__(self, id: str, created: int, model: str) -> None:
        self._head = {"id": id, "created": created, "model": model}

    def whole(self, progress: Progress) -> Json:
        """Return the answer in one piece."""
        message: Json = {"role": "assistant", "content": progress.text or None, "refusal": None}
        if progress.calls:
            message["tool_calls"] = _calls(progress)
        choice = {"index": 0, "message": message, "finish_reason": _finish(progress), "logprobs": None}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage_of(progress.outcome.usage),
        }

    def chunk(self, delta: Json, finish: str | None = None) -> Json:
        """Return a piece of it."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}

    def ending(self, progress: Progress, with_usage: bool) -> list[Json]:
        """Return the last pieces."""
        calls = [{"index": at, **call} for at, call in enumerate(_calls(progress))]
        made = [self.chunk({"tool_calls": calls})] if calls else []
        made.append(self.chunk({}, _finish(progress)))
        if with_usage:
            made.append({**self.chunk({}), "choices": [], "usage": usage_of(progress.outcome.usage)})
        return made


async def _pieces(progress: Progress, first: Seen, rest: AsyncGenerator[Seen, None]) -> AsyncGenerator[Json, None]:
    """Yield what is said, as it is said."""
    for piece in _piece(progress, first):
        yield piece
    async for seen in rest:
        for piece in _piece(progress, seen):
            yield piece
        if progress.waiting:
            return


def _piece(progress: Progress, seen: Seen) -> list[Json]:
    if isinstance(seen, Delta) and seen.kind == "reasoning":
        return [{"reasoning_content": seen.text}]
    text = progress.take(seen)
    return [{"content": text}] if text else []


def _failure(progress: Progress) -> Json:
    try:
        progress.outcome.need()
    except Rejected as error:
        return {"error": {"message": error.sentence, "type": "server_error", "param": None, "code": error.code}}
    return {}


def _calls(progress: Progress) -> list[Json]:
    return [
        {"id": call.id, "type": "function", "function": {"name": shown_name(call), "arguments": call.arguments}}
        for call in progress.calls
    ]


def _finish(progress: Progress) -> str:
    if progress.calls:
        return "tool_calls"
    return "length" if progress.outcome.reason in ("max_steps", "budget") else "stop"


def usage_of(usage: Usage) -> Json:
    """Say usage as the chat protocol does."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _model(agent: Agent) -> Json:
    return {"id": agent.name, "object": "model", "created": 0, "owned_by": "operant", "description": agent.description}


def _tools(body: Json) -> tuple[ToolSpec, ...]:
    if body.get("tool_choice") == "none":
        return ()
    found: list[ToolSpec] = []
    for tool in need_list(body.get("tools") or [], "tools"):
        function = tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, dict):
            raise wrong("Only functions can be tools here.", "The agent has tools of its own for everything else.")
        found.append(spec_of(text_field(cast("Json", function), "name"), cast("Json", function)))
    return tuple(found)
