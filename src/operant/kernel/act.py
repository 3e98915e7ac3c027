"""Doing what a reply asks for: each call through the gate, its intent on record before it can do anything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from operant.kernel.conversation import Conversation
from operant.kernel.deadline import Deadline
from operant.kernel.gate import Admitted, Answered, Question
from operant.kernel.house import House
from operant.kernel.ports import CallContext
from operant.kernel.records import (
    Agent,
    ApprovalAnswered,
    ApprovalAsked,
    Delta,
    Text,
    ToolCall,
    ToolEnded,
    ToolResult,
    ToolStarted,
)

APPROVAL_S = 7 * 24 * 3600
"""How long a question stands."""


_INTERRUPTED = "It may or may not have happened: the process ended while it ran. Check before you repeat it."


class _Ready(NamedTuple):
    """A call whose intent is on record; `key` is the same when it is run again."""

    admission: Admitted | Question
    key: str


class Acting:
    """Answer the calls of one turn."""

    def __init__(self, house: House, talk: Conversation, agent: Agent, deadline: Deadline) -> None:
        self._house = house
        self._talk = talk
        self._agent = agent
        self._deadline = deadline

    async def answer(self, calls: Sequence[ToolCall]) -> None:
        """Answer the calls of a step: side by side when all of them only read, else in the order asked."""
        calls = [self._house.gate.meant(self._agent, self._talk.key, call) for call in calls]
        effects = {spec.name: spec.effect for spec in self._house.gate.offered(self._agent, self._talk.key)}
        if len(calls) == 1 or not all(effects.get(call.name) == "read" for call in calls):
            for call in calls:
                await self._settle(call, await self._ready(call))
            return
        ready = [(call, await self._ready(call)) for call in calls]
        async with asyncio.TaskGroup() as group:
            for call, one in ready:
                group.create_task(self._settle(call, one))

    async def single(self, call: ToolCall, who: str, *, may_decide: bool) -> ToolResult:
        """Run one call outside any turn; a caller who may answer approvals has answered by making it."""
        admission = await self._house.gate.admit(self._talk.key, self._agent, call, who)
        await self._talk.record(*admission.notes)
        if isinstance(admission, Question) and not may_decide:
            refusal = ToolResult(parts=(Text(text="A person must allow this call first."),), outcome="denied")
            return await self._settle(call, refusal)
        if isinstance(admission, Answered):
            return await self._settle(call, admission.result)
        return await self._settle(call, await self._intend(call, admission))

    async def _ready(self, call: ToolCall) -> _Ready | ToolResult:
        """Pass the gate, and a person where one must decide, and put the intent on record."""
        talk = self._talk
        before = talk.standing.running.get(call.id)
        if before is not None and before.effect == "external":
            return ToolResult(parts=(Text(text=_INTERRUPTED),), outcome="interrupted")
        admission = await self._house.gate.admit(talk.key, self._agent, call)
        await talk.record(*admission.notes)
        if isinstance(admission, Answered):
            return admission.result
        if isinstance(admission, Question):
            refusal = await self._asked(call, admission)
            if refusal is not None:
                return refusal
        if before is not None:
            return _Ready(admission, before.key)
        return await self._intend(call, admission)

    async def _intend(self, call: ToolCall, admission: Admitted | Question) -> _Ready:
        spec, key = admission.tool.spec, self._house.ids.new()
        intent = ToolStarted(
            call_id=call.id, name=call.name, arguments=admission.arguments, effect=spec.effect, key=key
        )
        await self._talk.record(intent)
        return _Ready(admission, key)

    async def _settle(self, call: ToolCall, ready: _Ready | ToolResult) -> ToolResult:
        """Run what may run, once its intent is durable, and record what came of it."""
        house, seconds = self._house, 0.0
        result = ready
        if isinstance(result, _Ready):
            await self._talk.flush()
            house.faults("intended")
            began = house.clock.monotonic()
            result = await self._do(call, result)
            seconds = house.clock.monotonic() - began
        await self._talk.record(
            ToolEnded(
                call_id=call.id,
                name=call.name,
                outcome=result.outcome,
                parts=result.parts,
                artifacts=result.artifacts,
                duration_ms=round(seconds * 1000, 3),
                labels=result.labels,
            )
        )
        return result

    async def _do(self, call: ToolCall, ready: _Ready) -> ToolResult:
        talk, house = self._talk, self._house
        context = CallContext(
            call_id=call.id,
            session=talk.key,
            turn=talk.standing.turn,
            agent=self._agent,
            key=ready.key,
            principal=f"agent:{self._agent.name}",
            repeated=talk.standing.resumed > 0,
        )
        house.faults("acting")
        result, notes = await house.gate.run(ready.admission, context, _Live(self, call.id))
        house.faults("acted")
        await talk.record(*notes)
        return result

    async def _asked(self, call: ToolCall, question: Question) -> ToolResult | None:
        """Have a person decide; None when the call may run. The answer holds for exactly these arguments."""
        talk, house = self._talk, self._house
        standing = talk.standing
        if {question.digest, f"{call.id}:{question.digest}"} & standing.allowed:
            return None
        refused = standing.refused.get(call.id)
        if refused is not None:
            return _denied(refused.reason)
        asked = standing.question(call.id)
        if asked is None or asked.digest != question.digest:
            asked = ApprovalAsked(
                approval_id=house.ids.new(),
                call_id=call.id,
                name=call.name,
                arguments=question.arguments,
                digest=question.digest,
                question=question.question,
                expires=house.clock.now() + APPROVAL_S * 1_000_000,
            )
            await talk.record(asked)
        talk.expect(asked.approval_id)
        await talk.flush()
        answer = await self._person(asked)
        return None if answer.answer == "allow" else _denied(answer.reason)

    async def _person(self, asked: ApprovalAsked) -> ApprovalAnswered:
        """Wait for an answer; the turn's own clock stands still meanwhile."""
        left = max(0.0, (asked.expires - self._house.clock.now()) / 1_000_000)
        with self._deadline.paused():
            try:
                async with asyncio.timeout(left):
                    return await self._talk.answer_to(asked.approval_id)
            except TimeoutError:
                body = ApprovalAnswered(
                    approval_id=asked.approval_id,
                    call_id=asked.call_id,
                    answer="deny",
                    by="kernel",
                    reason="Nobody answered in time.",
                )
                await self._talk.record(body)
                return body

    def show(self, text: str, call_id: str) -> None:
        """Show followers what a tool prints while it runs; this is not kept."""
        talk = self._talk
        self._deadline.beat()
        self._house.log.show(Delta(session=talk.key, turn=talk.standing.turn, kind="tool", text=text, call_id=call_id))


class _Live:
    """Passes a tool's output on to the followers."""

    def __init__(self, acting: Acting, call_id: str) -> None:
        self._acting = acting
        self._call_id = call_id

    def __call__(self, text: str) -> None:
        self._acting.show(text, self._call_id)


def _denied(reason: str) -> ToolResult:
    words = f"A person refused this call: {reason}" if reason else "A person refused this call."
    return ToolResult(parts=(Text(text=words),), outcome="denied")
