"""The OpenAI chat protocol: what nearly every server speaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from operant.ext.providers.wire import Choice, Chunk, Requests, UsagePiece, decode_chunk
from operant.kit.http import Http, HttpError, HttpResponse, HttpTimeout, HttpUnreachable
from operant.kit.secret import Secret
from operant.kit.sse import SseDecoder
from operant.sdk import (
    Blobs,
    Clock,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    Part,
    Price,
    Reasoning,
    ReasoningDelta,
    Record,
    Reply,
    StreamPart,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)

_FINISH = {"tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length", "stop": "stop"}
_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    413: "context_overflow",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}
_TOO_LONG = ("context_length", "context length", "context window", "too long", "maximum context", "too many tokens")
IDLE_S = 600.0
DRAIN_S = 0.02
"""How long a reply that is whole waits for the end of its stream, so that the connection can be used again."""


class Endpoint(Record):
    """Where a provider is and what is known of its models; `*` in the tables stands for all others."""

    name: str
    base_url: str
    key: Secret = Secret()
    headers: dict[str, str] = {}
    windows: dict[str, int] = {}
    prices: dict[str, Price] = {}


class OpenAIChat:
    """A provider that speaks the OpenAI chat protocol."""

    def __init__(self, endpoint: Endpoint, http: Http, blobs: Blobs, clock: Clock) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._http = http
        self._clock = clock
        self._requests = Requests(blobs)
        self._url = endpoint.base_url.rstrip("/") + "/chat/completions"

    def window(self, model: str) -> int:
        """Return a model's context window in tokens."""
        windows = self._endpoint.windows
        return windows.get(model) or windows.get("*") or 128_000

    def price(self, model: str) -> Price | None:
        """Return a model's price."""
        prices = self._endpoint.prices
        return prices.get(model) or prices.get("*")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Yield deltas and then one `Reply`. Raises only `ModelError`."""
        body = await self._requests.body(request)
        with _translated(self.name):
            post = self._http.post(self._url, body, self._headers(), IDLE_S)
            async with post as response, aclosing(self._parts(response, request.model)) as parts:
                async for part in parts:
                    yield part

    async def _parts(self, response: HttpResponse, model: str) -> AsyncGenerator[StreamPart, None]:
        if response.status != 200:
            raise await self._refusal(response)
        gathering = _Gathering(self.name, model)
        async with aclosing(_data(response)) as stream:
            async for data in stream:
                if data == "[DONE]":
                    await response.drain(DRAIN_S)
                    yield gathering.reply(done=True)
                    return
                for part in gathering.add(data):
                    yield part
        yield gathering.reply(done=False)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", **self._endpoint.headers}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key.reveal()}"
        return headers

    async def _refusal(self, response: HttpResponse) -> ModelError:
        """Say what a status other than 200 means."""
        said = _message(await response.text())
        kind = _STATUS.get(response.status, "server" if response.status >= 500 else "bad_request")
        if kind == "bad_request" and any(words in said.casefold() for words in _TOO_LONG):
            kind = "context_overflow"
        hint = ""
        if kind == "auth":
            hint = f"Check the key: {self._endpoint.key.name or f'providers.{self.name}.api_key'}."
        secret = self._endpoint.key.reveal()
        said = said.replace(secret, "***") if secret else said
        sentence = f"{self.name} refused ({response.status}){': ' + said if said else '.'}"
        wait = _retry_after(response.headers, self._clock.now())
        return ModelError(kind, sentence, hint, retry_after=wait)


async def _data(response: HttpResponse) -> AsyncGenerator[str, None]:
    decoder = SseDecoder()
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            for event in decoder.feed(piece):
                yield event.data


@contextmanager
def _translated(provider: str) -> Generator[None]:
    try:
        yield
    except HttpUnreachable as error:
        raise ModelError("unreachable", f"{provider} cannot be reached: {error}") from error
    except HttpTimeout as error:
        raise ModelError("timeout", f"{provider} did not answer in time.") from error
    except HttpError as error:
        raise ModelError("cut", f"{provider} broke off: {error}") from error


class _Gathering:
    """Put a reply together; calls come out only when all of them are there."""

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _GatheredCall] = {}
        self._finish = ""
        self._usage = Usage(calls=1)

    def add(self, data: str) -> list[StreamPart]:
        """Take a chunk in and return what it shows."""
        try:
            chunk = decode_chunk(data)
        except msgspec.MsgspecError as error:
            raise ModelError("cut", f"{self._provider} sent a chunk that is no JSON of the protocol.") from error
        if chunk.error is not None:
            raise ModelError("server", f"{self._provider} failed in the middle: {chunk.error.message or 'no reason'}")
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        return [part for choice in chunk.choices for part in self._choice(chunk, choice)]

    def _choice(self, chunk: Chunk, choice: Choice) -> list[StreamPart]:
        shown: list[StreamPart] = []
        delta = choice.delta
        if delta is not None and not self._finish:
            thought = delta.reasoning_content or delta.reasoning
            if thought:
                self._reasoning.append(thought)
                shown.append(ReasoningDelta(text=thought))
            words = delta.content or delta.refusal
            if words:
                self._text.append(words)
                shown.append(TextDelta(text=words))
            for piece in delta.tool_calls or ():
                self._calls.setdefault(piece.index, _GatheredCall()).add(piece)
        self._finish = choice.finish_reason or self._finish
        return shown

    def reply(self, *, done: bool) -> Reply:
        """Return the whole reply. Raises `ModelError` when the stream ended before it was one."""
        if not self._finish and not (done and (self._text or self._calls)):
            raise ModelError("cut", f"{self._provider} broke off before its answer was whole.")
        if self._finish == "content_filter" and not self._text:
            raise ModelError("content_filter", f"{self._provider} withheld its answer (content filter).")
        parts: list[Part] = []
        if self._reasoning:
            parts.append(Reasoning(text="".join(self._reasoning)))
        if self._text:
            parts.append(Text(text="".join(self._text)))
        # A reply that hit the output limit may hold half a call, and half a call is none.
        if self._finish != "length":
            parts += self._whole_calls()
        finish = _FINISH.get(self._finish, self._finish or "stop")
        return Reply(parts=tuple(parts), model=self._model, provider=self._provider, finish=finish, usage=self._usage)

    def _whole_calls(self) -> list[ToolCall]:
        calls: list[ToolCall] = []
        taken: set[str] = set()
        for index, gathered in sorted(self._calls.items()):
            id = gathered.id or f"call_{index}"
            while id in taken:
                id += "_"
            taken.add(id)
            calls.append(ToolCall(id=id, name=gathered.name, arguments="".join(gathered.arguments)))
        return calls


class _GatheredCall:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def add(self, piece: Any) -> None:
        self.id = self.id or piece.id or ""
        if piece.function is not None:
            self.name = self.name or piece.function.name or ""
            self.arguments.append(piece.function.arguments or "")


def _usage(piece: UsagePiece) -> Usage:
    prompt, output = piece.prompt_tokens_details, piece.completion_tokens_details
    return Usage(
        input=piece.prompt_tokens or 0,
        cached=(prompt.cached_tokens or 0) if prompt else 0,
        output=piece.completion_tokens or 0,
        reasoning=(output.reasoning_tokens or 0) if output else 0,
        calls=1,
    )


def _message(body: str) -> str:
    """Find the sentence in an error body."""
    for shape in (_Nested, _Flat):
        try:
            found = msgspec.json.decode(body, type=shape)
        except msgspec.MsgspecError:
            continue
        said = found.error if isinstance(found, _Nested) else found
        return (said.message or "")[:300]
    return body.strip().splitlines()[0][:200] if body.strip() else ""


class _Flat(msgspec.Struct):
    message: str | None


class _Nested(msgspec.Struct):
    error: _Flat


def _retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """Read how long to wait: milliseconds, seconds or a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "")
        if not value:
            return None
        if value.replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - now / 1_000_000)
    except ValueError:
        return None
