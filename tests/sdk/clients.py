"""The official SDKs behind one shape, so that one test asks all protocols the same."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anthropic
import httpx2
import openai
from google import genai
from google.genai import errors, types

from operant.sdk.testing.script import Made
from operant.sdk.testing.server import ScriptedServer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"what": {"type": "string"}},
    "required": ["what"],
    "additionalProperties": False,
}


@dataclass
class Heard:
    """What an SDK made of a reply; `history` are the messages with which it goes back."""

    text: str = ""
    thoughts: str = ""
    calls: list[Made] = field(default_factory=list)
    finish: str = ""
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    refused: str = ""
    history: list[Any] = field(default_factory=list)


class Talk(Protocol):
    """One SDK."""

    broken: tuple[type[Exception], ...]
    """What it raises when a stream is cut."""

    def user(self, text: str, picture: str = "") -> Any:
        """Return a message, with a picture in base64."""
        ...

    def results(self, calls: list[Made], text: str) -> list[Any]:
        """Return what answers calls."""
        ...

    async def ask(self, messages: list[Any], *, stream: bool, schema: Any = None) -> Heard:
        """Ask, with a tool `look` and everything that makes the protocol show its reasoning."""
        ...

    def status_of(self, error: Exception) -> int:
        """Return the status that an error of the SDK has."""
        ...


class OpenAi:
    """What both protocols of OpenAI have in common."""

    broken: tuple[type[Exception], ...] = (openai.OpenAIError, httpx2.HTTPError)

    def __init__(self, api: openai.AsyncOpenAI) -> None:
        self.api = api

    def status_of(self, error: Exception) -> int:
        assert isinstance(error, openai.APIStatusError)
        return error.status_code


class ChatTalk(OpenAi):
    def user(self, text: str, picture: str = "") -> Any:
        if not picture:
            return {"role": "user", "content": text}
        shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        return {"role": "user", "content": [{"type": "text", "text": text}, shown]}

    def results(self, calls: list[Made], text: str) -> list[Any]:
        return [{"role": "tool", "tool_call_id": call.id, "content": text} for call in calls]

    async def ask(self, messages: list[Any], *, stream: bool, schema: Any = None) -> Heard:
        more: Any = {}
        if schema is not None:
            wanted = {"name": "answer", "schema": schema, "strict": True}
            more["response_format"] = {"type": "json_schema", "json_schema": wanted}
        tools: Any = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
        if not stream:
            whole = await self.api.chat.completions.create(model="one", messages=messages, tools=tools, **more)
            return self._heard(whole)
        options: Any = {"include_usage": True}
        async with self.api.chat.completions.stream(
            model="one", messages=messages, tools=tools, stream_options=options, **more
        ) as events:
            return self._heard(await events.get_final_completion())

    def _heard(self, reply: Any) -> Heard:
        choice, usage = reply.choices[0], reply.usage
        message = choice.message
        return Heard(
            text=message.content or "",
            thoughts=getattr(message, "reasoning_content", "") or "",
            calls=[Made(one.id, one.function.name, one.function.arguments) for one in message.tool_calls or ()],
            finish=choice.finish_reason,
            refused=message.refusal or "",
            input=usage.prompt_tokens,
            cached=usage.prompt_tokens_details.cached_tokens,
            output=usage.completion_tokens,
            reasoning=usage.completion_tokens_details.reasoning_tokens,
            history=[message.model_dump(exclude_none=True)],
        )


class ResponsesTalk(OpenAi):
    def user(self, text: str, picture: str = "") -> Any:
        if not picture:
            return {"role": "user", "content": text}
        shown = {"type": "input_image", "image_url": f"data:image/png;base64,{picture}"}
        return {"role": "user", "content": [{"type": "input_text", "text": text}, shown]}

    def results(self, calls: list[Made], text: str) -> list[Any]:
        return [{"type": "function_call_output", "call_id": call.id, "output": text} for call in calls]

    async def ask(self, messages: list[Any], *, stream: bool, schema: Any = None) -> Heard:
        more: Any = {"include": ["reasoning.encrypted_content"], "store": False}
        if schema is not None:
            more["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}
        tools: Any = [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": True}]
        if not stream:
            return self._heard(await self.api.responses.create(model="one", input=messages, tools=tools, **more))
        ended: Any = None
        told = ""
        async for one in await self.api.responses.create(model="one", input=messages, tools=tools, stream=True, **more):
            if one.type in {"response.output_text.delta", "response.refusal.delta"}:
                told += one.delta  # type: ignore[union-attr]
            if one.type == "error":
                raise openai.OpenAIError(one.message)
            ended = getattr(one, "response", ended)
        heard = self._heard(ended)
        assert told == heard.text + heard.refused
        return heard

    def _heard(self, reply: Any) -> Heard:
        usage = reply.usage
        heard = Heard(
            finish=reply.incomplete_details.reason if reply.incomplete_details else reply.status,
            input=usage.input_tokens,
            cached=usage.input_tokens_details.cached_tokens,
            output=usage.output_tokens,
            reasoning=usage.output_tokens_details.reasoning_tokens,
            history=[item.model_dump(exclude_none=True) for item in reply.output],
        )
        for item in reply.output:
            if item.type == "reasoning":
                heard.thoughts += "".join(part.text for part in item.summary)
            elif item.type == "function_call":
                heard.calls.append(Made(item.call_id, item.name, item.arguments))
            else:
                heard.text += "".join(part.text for part in item.content if part.type == "output_text")
                heard.refused += "".join(part.refusal for part in item.content if part.type == "refusal")
        return heard


class MessagesTalk:
    broken: tuple[type[Exception], ...] = (anthropic.APIError, httpx2.HTTPError)

    def __init__(self, api: anthropic.AsyncAnthropic) -> None:
        self.api = api

    def status_of(self, error: Exception) -> int:
        assert isinstance(error, anthropic.APIStatusError)
        return error.status_code

    def user(self, text: str, picture: str = "") -> Any:
        source = {"type": "base64", "media_type": "image/png", "data": picture}
        shown = [{"type": "image", "source": source}] if picture else []
        return {"role": "user", "content": [{"type": "text", "text": text}, *shown]}

    def results(self, calls: list[Made], text: str) -> list[Any]:
        content = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call in calls]
        return [{"role": "user", "content": content}]

    async def ask(self, messages: list[Any], *, stream: bool, schema: Any = None) -> Heard:
        more: Any = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "cache_control": {"type": "ephemeral"}}
        if schema is not None:
            more["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        tools: Any = [{"name": "look", "input_schema": SCHEMA}]
        if not stream:
            return self._heard(
                await self.api.messages.create(model="one", max_tokens=9_000, messages=messages, tools=tools, **more)
            )
        async with self.api.messages.stream(
            model="one", max_tokens=9_000, messages=messages, tools=tools, **more
        ) as events:
            return self._heard(await events.get_final_message())

    def _heard(self, reply: Any) -> Heard:
        usage = reply.usage
        content = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in reply.content]
        heard = Heard(
            finish=reply.stop_reason,
            input=usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
            cached=usage.cache_read_input_tokens,
            output=usage.output_tokens,
            reasoning=usage.output_tokens_details.thinking_tokens,
            history=[{"role": "assistant", "content": content}],
        )
        for block in reply.content:
            if block.type == "thinking":
                heard.thoughts += block.thinking
            elif block.type == "tool_use":
                heard.calls.append(Made(block.id, block.name, json.dumps(block.input, separators=(",", ":"))))
            elif block.type == "text":
                heard.text += block.text
        heard.refused = heard.text if reply.stop_reason == "refusal" else ""
        return heard


class GeminiTalk:
    broken: tuple[type[Exception], ...] = (errors.APIError, httpx2.HTTPError)

    def __init__(self, api: genai.Client) -> None:
        self.api = api

    def status_of(self, error: Exception) -> int:
        assert isinstance(error, errors.APIError)
        return error.code

    def user(self, text: str, picture: str = "") -> Any:
        shown = types.Blob(mime_type="image/png", data=base64.b64decode(picture)) if picture else None
        parts = [types.Part(text=text), *([types.Part(inline_data=shown)] if shown else [])]
        return types.Content(role="user", parts=parts)

    def results(self, calls: list[Made], text: str) -> list[Any]:
        parts = [
            types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": text}))
            for call in calls
        ]
        return [types.Content(role="user", parts=parts)]

    async def ask(self, messages: list[Any], *, stream: bool, schema: Any = None) -> Heard:
        look = types.FunctionDeclaration(name="look", parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[look])],
            thinking_config=types.ThinkingConfig(include_thoughts=True),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            response_mime_type="application/json" if schema is not None else None,
            response_json_schema=schema,
        )
        if not stream:
            return self._heard(
                [await self.api.aio.models.generate_content(model="one", contents=messages, config=config)]
            )
        chunks = await self.api.aio.models.generate_content_stream(model="one", contents=messages, config=config)
        return self._heard([one async for one in chunks])

    def _heard(self, chunks: list[types.GenerateContentResponse]) -> Heard:
        usage: Any = chunks[-1].usage_metadata
        heard = Heard(
            input=usage.prompt_token_count,
            cached=usage.cached_content_token_count or 0,
            output=usage.candidates_token_count + (usage.thoughts_token_count or 0),
            reasoning=usage.thoughts_token_count or 0,
        )
        parts: list[types.Part] = []
        for chunk in chunks:
            if chunk.prompt_feedback is not None:
                heard.finish = f"blocked {chunk.prompt_feedback.block_reason.value}"  # type: ignore[union-attr]
            for candidate in chunk.candidates or ():
                parts += (candidate.content and candidate.content.parts) or []
                heard.finish = candidate.finish_reason.value if candidate.finish_reason else heard.finish
        for part in parts:
            if part.function_call is not None:
                made = json.dumps(part.function_call.args, separators=(",", ":"))
                heard.calls.append(Made(part.function_call.id or "", part.function_call.name or "", made))
            elif part.thought:
                heard.thoughts += part.text or ""
            else:
                heard.text += part.text or ""
        heard.refused = heard.text if heard.finish == "PROHIBITED_CONTENT" else ""
        heard.history = [types.Content(role="model", parts=parts)]
        return heard


def _http() -> httpx2.AsyncClient:
    """Return a client that is made quickly: it never meets a certificate."""
    return httpx2.AsyncClient(verify=False, timeout=5)


@asynccontextmanager
async def _openai(server: ScriptedServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0, http_client=_http()) as api:
        yield api


@asynccontextmanager
async def _chat(server: ScriptedServer) -> AsyncIterator[Talk]:
    async with _openai(server) as api:
        yield ChatTalk(api)


@asynccontextmanager
async def _responses(server: ScriptedServer) -> AsyncIterator[Talk]:
    async with _openai(server) as api:
        yield ResponsesTalk(api)


@asynccontextmanager
async def _messages(server: ScriptedServer) -> AsyncIterator[Talk]:
    options: Any = {"base_url": server.root, "api_key": "none", "max_retries": 0}
    async with anthropic.AsyncAnthropic(http_client=_http(), **options) as api:
        yield MessagesTalk(api)


@asynccontextmanager
async def google(server: ScriptedServer) -> AsyncIterator[genai.Client]:
    """Open Google's SDK, over a client of ours: its own one warns."""
    async with _http() as http:
        with httpx2.Client(verify=False) as unused:
            options = types.HttpOptions(base_url=server.root, httpx_async_client=http, httpx_client=unused)
            yield genai.Client(api_key="none", http_options=options)


@asynccontextmanager
async def _gemini(server: ScriptedServer) -> AsyncIterator[Talk]:
    async with google(server) as api:
        yield GeminiTalk(api)


_TALKS = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}
PROTOCOLS = list(_TALKS)


def talking(protocol: str, server: ScriptedServer) -> AbstractAsyncContextManager[Talk]:
    """Open the SDK of a protocol."""
    return _TALKS[protocol](server)
