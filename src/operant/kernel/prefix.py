"""The part of a request that must not change: the frozen system prompt and tools, and compactions on record."""

from __future__ import annotations

import msgspec

from operant.kernel.context import Context
from operant.kernel.conversation import Conversation
from operant.kernel.errors import Missing
from operant.kernel.hooks import Hooks
from operant.kernel.points import ASSEMBLE, AssembleInput, AssembleOutput, Compaction
from operant.kernel.ports import Blobs
from operant.kernel.records import Agent, BlobRef, ContextCompacted, ContextOpened, ModelRequest, ToolSpec

_ROUNDS = 4
"""How many compactions may follow each other before one request."""
_encoder = msgspec.json.Encoder(order="deterministic")


class Prefix:
    """Make requests out of conversations."""

    def __init__(self, hooks: Hooks, blobs: Blobs) -> None:
        self._hooks = hooks
        self._blobs = blobs
        self._kept: dict[str, tuple[str, tuple[ToolSpec, ...], ContextOpened]] = {}

    async def request(
        self, talk: Conversation, agent: Agent, model: str, window: int, tools: tuple[ToolSpec, ...], overflow: bool
    ) -> ModelRequest:
        """Return what the model is sent now, after whatever compaction the context engine wants first."""
        output = AssembleOutput()
        for _ in range(_ROUNDS):
            context = talk.context
            answer = await self._hooks.provide(
                ASSEMBLE,
                AssembleInput(
                    session=talk.key,
                    agent=agent,
                    model=model,
                    window=window,
                    messages=context.messages,
                    seqs=context.seqs,
                    turns=context.turns,
                    tokens=context.tokens,
                    tools=tools,
                    seq=talk.history.seq,
                    first=talk.standing.steps == 0,
                    overflow=overflow,
                ),
            )
            if answer is None:
                raise Missing(
                    "Nothing assembles the context: no handler of session.assemble answered.",
                    "Enable the extension 'context', or another one that provides it.",
                )
            output = answer
            if output.compact is None:
                break
            await self._compact(talk, output.compact)
            overflow = False
        await self._freeze(talk, agent.name, output)
        return ModelRequest(
            model=model, system=output.system, messages=talk.context.messages, tools=output.tools, session=talk.key
        )

    async def _compact(self, talk: Conversation, wanted: Compaction) -> None:
        body = ContextCompacted(upto=wanted.upto, summary=wanted.summary, strategy=wanted.strategy)
        trial = Context(talk.context.state())
        trial.compact(body)
        sizes = msgspec.structs.replace(body, tokens_before=talk.context.tokens, tokens_after=trial.tokens)
        await talk.record(sizes)

    async def _freeze(self, talk: Conversation, agent: str, output: AssembleOutput) -> None:
        """Put prompt and tools on record where they are not those of the last request."""
        opened = await self._opened(agent, output)
        now = talk.context.opened
        if now is None or (now.system.digest, now.tools.digest) != (opened.system.digest, opened.tools.digest):
            reason = output.reason or ("first request" if now is None else _changed(now, opened))
            await talk.record(ContextOpened(system=opened.system, tools=opened.tools, reason=reason))

    async def _opened(self, agent: str, output: AssembleOutput) -> ContextOpened:
        kept = self._kept.get(agent)
        if kept is not None and kept[0] == output.system and kept[1] == output.tools:
            return kept[2]
        system = await self._blob(output.system.encode(), "text/plain")
        tools = await self._blob(_encoder.encode(output.tools), "application/json")
        opened = ContextOpened(system=system, tools=tools)
        self._kept[agent] = (output.system, output.tools, opened)
        return opened

    async def _blob(self, data: bytes, media_type: str) -> BlobRef:
        return await self._blobs.put_blob(data, media_type)


def _changed(before: ContextOpened, after: ContextOpened) -> str:
    changed = [name for name in ("system", "tools") if getattr(before, name).digest != getattr(after, name).digest]
    return f"changed: {', '.join(changed)}"
