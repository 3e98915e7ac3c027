"""One model call: choose, ask, retry as the policies say, and put what happened on record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from operant.kernel.conversation import Conversation
from operant.kernel.errors import Missing, ModelError, Refused
from operant.kernel.hooks import Hooks
from operant.kernel.log import Log
from operant.kernel.points import (
    COMPUTE_AFTER,
    COMPUTE_BEFORE,
    COMPUTE_DELTA,
    COMPUTE_ERROR,
    COMPUTE_MODEL,
    ComputedInput,
    ComputedOutput,
    ComputeInput,
    ComputeOutput,
    ErrorInput,
    ErrorOutput,
    ModelInput,
    Reject,
    Streamed,
)
from operant.kernel.ports import Clock, Faults, Model, Price
from operant.kernel.records import (
    Agent,
    Delta,
    Ending,
    ModelFailed,
    ModelReplied,
    ModelRequest,
    Parameters,
    ReasoningDelta,
    Reply,
    StreamPart,
    TextDelta,
    ToolCall,
)

Make = Callable[[str, bool], Awaitable[ModelRequest]]
"""Make the request for a model; the flag says that the last one was too long."""


class Limited(Refused):
    """Report that a gate refused a model call; `ending` is how the turn ends by it."""

    def __init__(self, reason: str, ending: Ending) -> None:
        super().__init__(reason)
        self.ending: Ending = ending


@dataclass(frozen=True)
class Asking:
    """What one model call is for."""

    talk: Conversation
    agent: Agent
    make: Make
    purpose: str = "turn"


class Compute:
    """Make model calls."""

    def __init__(self, hooks: Hooks, log: Log, clock: Clock, faults: Faults) -> None:
        self._hooks = hooks
        self._log = log
        self._clock = clock
        self._faults = faults
        self._providers: dict[str, Model] = {}

    def register(self, model: Model) -> None:
        """Add a provider, or replace the one of the same name."""
        self._providers[model.name] = model

    @property
    def providers(self) -> tuple[str, ...]:
        """Return the providers' names."""
        return tuple(sorted(self._providers))

    def find(self, name: str) -> tuple[Model, str]:
        """Return the provider and its own name of `provider/model`. Raises `ModelError`."""
        provider, _, model = name.partition("/")
        if provider not in self._providers:
            raise ModelError(
                "not_found",
                f"There is no provider {provider!r} for the model {name!r}.",
                f"Configure it under providers, or use one of: {', '.join(self.providers)}.",
            )
        return self._providers[provider], model

    def price(self, name: str) -> Price | None:
        """Return the price of `provider/model`, or None where it is not known."""
        provider, _, model = name.partition("/")
        found = self._providers.get(provider)
        return found.facts(model).price if found else None

    async def run(self, asking: Asking) -> ModelReplied:
        """Return a reply, recorded but not flushed. Raises `ModelError`, `Limited` or `Missing`."""
        talk = asking.talk
        about = ModelInput(session=talk.info, agent=asking.agent, purpose=asking.purpose)
        choice = await self._hooks.provide(COMPUTE_MODEL, about)
        if choice is None or not choice.chain:
            raise Missing("Nothing chooses a model: no handler of compute.model answered.", "Enable 'providers'.")
        model, attempt, attempts, overflow, compacted = choice.chain[0], 0, 0, False, False
        while True:
            attempt, attempts = attempt + 1, attempts + 1
            try:
                return await self._attempt(asking, model, choice.parameters, overflow, attempts)
            except ModelError as error:
                decision = await self._decide(asking, model, choice.chain, error, attempt, compacted)
                await self._failed(asking, model, error, decision)
                overflow = decision.then == "compact"
                compacted = compacted or overflow
                if decision.then == "fail":
                    raise ModelError(error.kind, decision.sentence or error.line()) from error
                if decision.then == "next":
                    model, attempt = decision.model, 0
            if decision.wait_s:
                await self._clock.sleep(decision.wait_s)

    async def _attempt(
        self, asking: Asking, model: str, parameters: Parameters, overflow: bool, attempts: int
    ) -> ModelReplied:
        talk = asking.talk
        provider, own_name = self.find(model)
        request = await asking.make(model, overflow)
        progress = talk.standing.progress()
        estimate = talk.context.tokens if asking.purpose == "turn" else _size(request)
        about = ComputeInput(
            session=talk.info,
            agent=asking.agent,
            model=model,
            progress=progress,
            estimate=estimate,
            purpose=asking.purpose,
        )
        limits = request.parameters if request.parameters.max_output_tokens else parameters
        ruling = await self._hooks.run(COMPUTE_BEFORE, about, ComputeOutput(parameters=limits))
        if ruling.notes:
            await talk.record(*ruling.notes)
        if isinstance(ruling.verdict, Reject):
            raise Limited(ruling.verdict.reason, ruling.verdict.code)
        await talk.flush()
        self._faults("computing")
        began = self._clock.monotonic()
        reply, first = await self._stream(asking, provider, _addressed(request, own_name, ruling.output.parameters))
        done = self._clock.monotonic()
        after = ComputedInput(
            session=talk.info, agent=asking.agent, model=model, progress=progress, purpose=asking.purpose
        )
        passed = await self._hooks.run(COMPUTE_AFTER, after, ComputedOutput(reply=reply))
        reply, usd = passed.output.reply, passed.output.usd
        body = ModelReplied(
            parts=reply.parts,
            model=model,
            provider=reply.provider,
            finish=reply.finish,
            usage=reply.usage if usd is None else msgspec.structs.replace(reply.usage, usd=usd),
            latency_ms=round((done - began) * 1000, 3),
            first_token_ms=round((first - began) * 1000, 3),
            attempts=attempts,
            purpose=asking.purpose,
        )
        await talk.record(*passed.notes, body)
        return body

    async def _stream(self, asking: Asking, provider: Model, request: ModelRequest) -> tuple[Reply, float]:
        """Return the reply and the time of its first part; deltas go to the followers as they arrive."""
        talk, limit = asking.talk, asking.agent.limits.stall_s
        turn = talk.standing.turn if asking.purpose == "turn" else ""
        first = 0.0
        async with aclosing(provider.stream(request)) as stream, _Idle(limit, provider.name) as idle:
            while True:
                part = await _next(stream, provider.name)
                idle.beat()
                first = first or self._clock.monotonic()
                if isinstance(part, Reply):
                    return _whole(part, provider.name), first
                self._faults("streaming")
                if turn:
                    self._show(talk.key, turn, part)

    def _show(self, session: str, turn: str, part: TextDelta | ReasoningDelta) -> None:
        kind = "text" if isinstance(part, TextDelta) else "reasoning"
        delta = Delta(session=session, turn=turn, kind=kind, text=part.text)
        self._log.show(delta)
        self._hooks.emit(COMPUTE_DELTA, Streamed(delta=delta))

    async def _decide(
        self, asking: Asking, model: str, chain: tuple[str, ...], error: ModelError, attempt: int, compacted: bool
    ) -> ErrorOutput:
        about = ErrorInput(
            session=asking.talk.key,
            agent=asking.agent,
            model=model,
            chain=chain,
            kind=error.kind,
            sentence=error.line(),
            retriable=error.retriable,
            retry_after=error.retry_after,
            attempt=attempt,
            compacted=compacted,
        )
        return await self._hooks.provide(COMPUTE_ERROR, about) or ErrorOutput(then="fail")

    async def _failed(self, asking: Asking, model: str, error: ModelError, decision: ErrorOutput) -> None:
        talk = asking.talk
        then = f"next {decision.model}" if decision.then == "next" else decision.then
        body = ModelFailed(
            model=model,
            provider=model.partition("/")[0],
            error=error.kind,
            sentence=error.sentence,
            retriable=error.retriable,
            then=then,
            purpose=asking.purpose,
        )
        await talk.record(body)
        await talk.flush()
        if asking.purpose == "turn" and decision.then != "fail":
            self._log.show(Delta(session=talk.key, turn=talk.standing.turn, kind="restart", text=error.sentence))


class _Idle:
    """Ends a stream on which nothing comes. Its timer is set anew only now and then: parts come by the thousand."""

    def __init__(self, limit_s: float, provider: str) -> None:
        self._limit_s = limit_s
        self._provider = provider
        self._loop = asyncio.get_running_loop()
        self._scope = asyncio.timeout(limit_s)
        self._set = self._loop.time()

    async def __aenter__(self) -> _Idle:
        await self._scope.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        try:
            await self._scope.__aexit__(*reason)
        except TimeoutError as error:
            raise ModelError("stalled", f"{self._provider} sent nothing for {self._limit_s:g} s.") from error

    def beat(self) -> None:
        """Note that something came."""
        now = self._loop.time()
        if now - self._set > self._limit_s / 8:
            self._set = now
            self._scope.reschedule(now + self._limit_s)


async def _next(stream: AsyncGenerator[StreamPart, None], provider: str) -> StreamPart:
    try:
        return await anext(stream)
    except StopAsyncIteration:
        raise ModelError("cut", f"{provider} ended its answer before it was whole.") from None


def _addressed(request: ModelRequest, model: str, parameters: Parameters) -> ModelRequest:
    return ModelRequest(
        model=model,
        system=request.system,
        messages=request.messages,
        tools=request.tools,
        parameters=parameters,
        session=request.session,
    )


def _size(request: ModelRequest) -> int:
    words = sum(len(getattr(part, "text", "")) for message in request.messages for part in message.parts)
    return (words + len(request.system)) // 4


def _whole(reply: Reply, provider: str) -> Reply:
    """Refuse a reply in which there is nothing to show and nothing to do."""
    if any(isinstance(part, ToolCall) or getattr(part, "text", "").strip() for part in reply.parts):
        return reply
    raise ModelError("empty", f"{provider} gave an empty answer.")
