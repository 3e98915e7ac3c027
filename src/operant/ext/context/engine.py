"""Answer `session.assemble`: the prompt and tools of a request, or the compaction that must come first."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.context.ambient import with_time
from operant.ext.context.cuts import LEFT_OUT, MASK, Cut, View, due
from operant.ext.context.prompt import Prompts
from operant.ext.context.summary import Gone, Summariser
from operant.sdk import (
    ASSEMBLE,
    COMPACT,
    DISPATCH_BEFORE,
    AssembleInput,
    AssembleOutput,
    CompactInput,
    Compaction,
    Host,
)

_SUMMARY_S = 600.0
"""A summary is a model call of its own, with retries; the kernel's usual 5 s would cut it off."""


@asynccontextmanager
async def setup(host: Host, settings: object) -> AsyncGenerator[None]:
    """Assemble contexts while the context is open."""
    summariser = Summariser(host)
    host.hook(ASSEMBLE, Engine(host, summariser).assemble, timeout_s=_SUMMARY_S)
    host.hook(COMPACT, summariser.compact, priority=-100, timeout_s=_SUMMARY_S)
    host.hook(DISPATCH_BEFORE, with_time, fail="open")
    yield


class Engine:
    """Decide what a model is sent; all that it remembers are prompts it has joined before."""

    def __init__(self, host: Host, summariser: Summariser) -> None:
        self._host = host
        self._summariser = summariser
        self._prompts = Prompts()

    async def assemble(self, input: AssembleInput) -> AssembleOutput:
        """Return prompt and tools, or the compaction that must be on record first."""
        prompt = self._prompts.of(input.agent, input.tools, self._host.commands_of(input.agent))
        compaction = await self._compaction(input, prompt.tokens)
        if compaction is not None:
            return AssembleOutput(compact=compaction)
        return AssembleOutput(system=prompt.system, tools=prompt.tools, reason=prompt.reason)

    async def _compaction(self, input: AssembleInput, fixed: int) -> Compaction | None:
        if not due(input):
            return None
        view = View(input, fixed)
        cut = view.plan()
        if cut is None:
            return None
        if cut.strategy == "mask":
            return Compaction(upto=cut.upto, summary=MASK, strategy="mask")
        if cut.strategy == "window":
            return Compaction(upto=cut.upto, summary=LEFT_OUT, strategy="window")
        return await self._summarised(input, cut, view.summary_chars)

    async def _summarised(self, input: AssembleInput, cut: Cut, chars: int) -> Compaction:
        gone = Gone(input.messages[: cut.index], folded=input.seqs[0] == 0, chars=chars)
        summary = await self._summary(input, cut.index)
        if not summary:
            return Compaction(upto=cut.upto, summary=gone.without_summary(), strategy="window")
        return Compaction(upto=cut.upto, summary=gone.summarised(summary), strategy="summary")

    async def _summary(self, input: AssembleInput, index: int) -> str:
        """Ask whoever provides summaries, else make one; empty when nobody could."""
        about = CompactInput(
            session=input.session,
            agent=input.agent,
            model=input.model,
            messages=input.messages[:index],
            window=input.window,
        )
        answer = await self._host.provide(COMPACT, about)
        if answer is None:  # the kernel does not call our own handler from within our own handler
            answer = await self._summariser.compact(about)
        return answer.summary.strip()
