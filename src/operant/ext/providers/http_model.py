"""A provider that is reached over HTTP: the same road for every protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager

from msgspec.structs import replace

from operant.ext.providers.dialect import Dialect
from operant.ext.providers.endpoint import Endpoint
from operant.ext.providers.refusals import lacking, refusal
from operant.kit.http import Http, HttpError, HttpResponse, HttpTimeout, HttpUnreachable
from operant.kit.sse import ServerEvent, SseDecoder
from operant.sdk import Clock, Facts, ModelError, ModelRequest, StreamPart

IDLE_S = 600.0
DRAIN_S = 0.02
"""How long a reply that is whole waits for the end of its stream, so that the connection can be used again."""


class HttpModel:
    """A provider of models; what its server says that a model cannot take, it does not send again."""

    def __init__(
        self,
        endpoint: Endpoint,
        dialect: Dialect,
        http: Http,
        clock: Clock,
        known: Callable[[str], Facts] | None = None,
    ) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._dialect = dialect
        self._http = http
        self._clock = clock
        self._known = known or endpoint.known
        self._learned: dict[str, Facts] = {}

    def facts(self, model: str) -> Facts:
        """Return what is known about a model."""
        return self._learned.get(model) or self._known(model)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Yield deltas and then one `Reply`. Raises only `ModelError`."""
        facts = self.facts(request.model)
        asked = request if facts.tools else replace(request, tools=())
        body = await self._dialect.body(asked, facts)
        address = self._dialect.address(request.model)
        with _translated(self.name):
            post = self._http.post(address, body, self._dialect.headers(), IDLE_S)
            async with post as response, aclosing(self._parts(response, request.model)) as parts:
                async for part in parts:
                    yield part

    async def _parts(self, response: HttpResponse, model: str) -> AsyncGenerator[StreamPart, None]:
        if response.status != 200:
            raise self._learn(model, await refusal(response, self._endpoint, self._clock))
        gathering = self._dialect.gathering(model)
        async with aclosing(_events(response)) as events:
            async for event in events:
                for part in gathering.add(event):
                    yield part
                if gathering.done:
                    await response.drain(DRAIN_S)
                    break
        yield gathering.reply()

    def _learn(self, model: str, error: ModelError) -> ModelError:
        """Remember what a model cannot take, so that the next attempt goes without."""
        lack = lacking(error.sentence) if error.kind == "unsupported" else ""
        facts = self.facts(model)
        if lack == "images" and facts.images:
            self._learned[model] = replace(facts, images=False, files=False)
        elif lack == "tools" and facts.tools:
            self._learned[model] = replace(facts, tools=False)
        else:
            return error
        sentence = f"{self.name}/{model} cannot take {lack}; I go on without."
        return ModelError("unsupported", sentence, "Choose another model: operant model use NAME.", retry_after=0.0)


async def _events(response: HttpResponse) -> AsyncGenerator[ServerEvent, None]:
    decoder = SseDecoder()
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            for event in decoder.feed(piece):
                yield event


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
