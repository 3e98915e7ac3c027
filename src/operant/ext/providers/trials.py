"""Trying a model: one small call for each thing that it should be able to do."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import msgspec

from operant.ext.providers.offline import NAME as OFFLINE
from operant.sdk import (
    BlobRef,
    Facts,
    Host,
    Message,
    Model,
    ModelError,
    ModelRequest,
    ModelTest,
    NotFound,
    Parameters,
    Part,
    Principal,
    Reply,
    Text,
    TextDelta,
    ToolCall,
    ToolSpec,
    Trial,
    text_of,
)

_ADD = ToolSpec(
    name="add",
    description="Add two numbers.",
    schema={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)
_SHAPE = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
# 16 x 16 pixels, all red.
_RED = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAF0lEQVR4nGP4z8BAEiJN9aiGUQ1DSgMAkPn/AbOzDJgAAAAASUVORK5CYII="
)
_LONG = "Operant keeps an append-only log. " * 700
_Verdict = tuple[bool | None, str, float]
_LIMIT = Parameters(max_output_tokens=600)


class Trials:
    """Try models of providers that are there."""

    def __init__(self, host: Host, providers: dict[str, Model], usual: Callable[[], str]) -> None:
        self._host = host
        self._providers = providers
        self._usual = usual

    async def test(self, who: Principal, call: ModelTest) -> tuple[Trial, ...]:
        """Try everything, one after the other; what the catalogue says it cannot do is not tried."""
        name = call.model or self._usual()
        provider, _, model = name.partition("/")
        if provider == OFFLINE:
            return (Trial(name="offline", ok=None, words="it has no intelligence that could be tried: name a model"),)
        if provider not in self._providers or not model:
            raise NotFound(
                f"There is no model {name!r}.", f"Name one of: {', '.join(self._providers)}, as PROVIDER/MODEL."
            )
        tried = _Tried(self._host, self._providers[provider], model)
        return tuple([await one for one in tried.all()])


class _Tried:
    """One model that is tried."""

    def __init__(self, host: Host, provider: Model, model: str) -> None:
        self._host = host
        self._provider = provider
        self._model = model
        self._facts: Facts = provider.facts(model)

    def all(self) -> list[Awaitable[Trial]]:
        return [
            self._trial("streaming", True, self._streams),
            self._trial("tools", self._facts.tools, self._calls),
            self._trial("images", self._facts.images, self._sees),
            self._trial("structured", True, self._shapes),
            self._trial("caching", True, self._caches),
        ]

    async def _trial(self, name: str, able: bool, attempt: Callable[[], Awaitable[_Verdict]]) -> Trial:
        if not able:
            return Trial(name=name, ok=None, words="it is said not to have this")
        began = self._host.clock.monotonic()
        try:
            ok, words, usd = await attempt()
        except ModelError as error:
            ok, words, usd = False, error.line(), 0.0
        return Trial(name=name, ok=ok, words=words, ms=round((self._host.clock.monotonic() - began) * 1000, 1), usd=usd)

    async def _streams(self) -> _Verdict:
        reply, pieces = await self._ask(Text(text="Count from 1 to 20, in digits, separated by spaces."))
        return pieces > 0, f"{pieces} pieces: {_short(reply)}", self._cost(reply)

    async def _calls(self) -> _Verdict:
        reply, _ = await self._ask(Text(text="Use the tool to add 19 and 23."), tools=(_ADD,))
        calls = [part for part in reply.parts if isinstance(part, ToolCall)]
        said = f"{calls[0].name} {calls[0].arguments}" if calls else f"no call: {_short(reply)}"
        return bool(calls) and calls[0].name == "add", said, self._cost(reply)

    async def _sees(self) -> _Verdict:
        picture: BlobRef = await self._host.blobs.put_blob(_RED, "image/png", "square.png")
        reply, _ = await self._ask(Text(text="Which colour is this square? One word."), picture)
        return "red" in text_of(reply.parts).casefold(), _short(reply), self._cost(reply)

    async def _shapes(self) -> _Verdict:
        limits = msgspec.structs.replace(_LIMIT, schema=_SHAPE)
        reply, _ = await self._ask(Text(text="Name the capital of France."), parameters=limits)
        try:
            found = msgspec.json.decode(text_of(reply.parts), type=dict[str, str])
        except msgspec.MsgspecError:
            return False, f"not the JSON that was asked for: {_short(reply)}", self._cost(reply)
        return set(found) == {"city"}, _short(reply), self._cost(reply)

    async def _caches(self) -> _Verdict:
        """Ask twice; where no price for cached tokens is known, there need not be a cache."""
        first, _ = await self._ask(Text(text="Say yes."), system=_LONG)
        second, _ = await self._ask(Text(text="Say yes."), system=_LONG)
        cached, sent = second.usage.cached, second.usage.input
        usd = self._cost(first) + self._cost(second)
        price = self._facts.price
        expected = price is not None and price.cached is not None
        ok = True if cached else False if expected else None
        return ok, f"{cached:,} of {sent:,} tokens came from the cache", usd

    async def _ask(
        self,
        *parts: Part,
        tools: tuple[ToolSpec, ...] = (),
        system: str = "You are being tried. Answer in few words.",
        parameters: Parameters = _LIMIT,
    ) -> tuple[Reply, int]:
        """Return the reply, and in how many pieces its words came."""
        message = Message(role="user", parts=parts)
        request = ModelRequest(
            model=self._model, system=system, messages=(message,), tools=tools, parameters=parameters
        )
        pieces = 0
        async with aclosing(self._provider.stream(request)) as stream:
            async for part in stream:
                if isinstance(part, Reply):
                    return part, pieces
                pieces += isinstance(part, TextDelta)
        raise ModelError("cut", f"{self._provider.name} ended its answer before it was whole.")

    def _cost(self, reply: Reply) -> float:
        price = self._facts.price
        return reply.usage.usd or (price.of(reply.usage) if price else 0.0)


def _short(reply: Reply) -> str:
    words = " ".join(text_of(reply.parts).split())
    return words if len(words) <= 60 else f"{words[:60]}…"
