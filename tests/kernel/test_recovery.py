"""What another process does with a log that ends in the middle: the recovery table, row by row."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from operant.kernel.hooks import Registration
from operant.kernel.kernel import Kernel
from operant.kernel.log import Stamp
from operant.kernel.points import TOOL_BEFORE, Ask
from operant.kernel.ports import Accept
from operant.kernel.records import (
    OWNER,
    Address,
    ApprovalAsked,
    Body,
    InboxItem,
    MessageReceived,
    ModelReplied,
    SessionOpened,
    Text,
    ToolCall,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from operant.kernel.syscalls import ApprovalAnswer, ApprovalList
from operant.sdk.testing.fakes import ScriptedModel
from operant.sdk.testing.store import MemoryStore
from operant.sdk.testing.system import Bench, ended, say, told
from operant.sdk.tool import tool

CALL = ToolCall(id="c1", name="push", arguments='{"what": "x"}')
OPENED = SessionOpened(agent="operant", channel="local", chat="s")
RECEIVED = MessageReceived(parts=(Text(text="push x"),), author="owner", address=Address(channel="local", chat="s"))
REPLIED = ModelReplied(parts=(CALL,), model="scripted/one", provider="scripted")
STARTED = ToolStarted(call_id="c1", name="push", arguments={"what": "x"}, effect="external", key="k1")


class Effects:
    """Tools that count, by key."""

    def __init__(self) -> None:
        self.pushes: list[str] = []
        self.keys: list[str] = []


def with_tools(kernel: Kernel, effects: Effects, effect: str) -> Kernel:
    @tool(effect=effect)  # type: ignore[arg-type]
    async def push(what: str, call: object = None) -> str:
        """Push."""
        effects.pushes.append(what)
        effects.keys.append(getattr(call, "key", ""))
        return "pushed"

    kernel.gate.register(push)
    return kernel


async def log_of(bench: Bench, *bodies: Body) -> None:
    """Leave a log behind, as a process does that was killed."""
    bench.store = MemoryStore(bench.clock)
    kernel = bench.kernel()
    await kernel.log.history("s").append(Stamp(agent="operant", turn="t1"), *bodies)


ENDINGS: list[tuple[str, Sequence[Body], str, int, str]] = [
    ("turn started", [OPENED, RECEIVED, TurnStarted()], "external", 1, "ok"),
    ("calls not started", [OPENED, RECEIVED, TurnStarted(), REPLIED], "external", 1, "ok"),
    ("external call started", [OPENED, RECEIVED, TurnStarted(), REPLIED, STARTED], "external", 0, "interrupted"),
]


@pytest.mark.parametrize(("name", "bodies", "effect", "pushes", "outcome"), ENDINGS, ids=[one[0] for one in ENDINGS])
async def test_the_end_of_the_log_decides(
    name: str, bodies: Sequence[Body], effect: str, pushes: int, outcome: str
) -> None:
    bench, effects = Bench(), Effects()
    await log_of(bench, *bodies)
    asked_before = any(isinstance(body, ModelReplied) for body in bodies)
    bench.model.script(*([] if asked_before else [[CALL]]), "All done.")
    kernel = with_tools(bench.kernel(), effects, effect)
    async with kernel.running():
        events = await ended(kernel)
    assert len(effects.pushes) == pushes
    assert [event.body.outcome for event in events if isinstance(event.body, ToolEnded)] == [outcome]
    assert told(events) == ["All done."]


async def test_an_idempotent_call_is_run_again_with_the_same_key() -> None:
    bench, effects = Bench(model=ScriptedModel("All done.")), Effects()
    started = ToolStarted(call_id="c1", name="push", arguments={"what": "x"}, effect="idempotent", key="k1")
    await log_of(bench, OPENED, RECEIVED, TurnStarted(), REPLIED, started)
    kernel = with_tools(bench.kernel(), effects, "idempotent")
    async with kernel.running():
        await ended(kernel)
    assert effects.keys == ["k1"]


async def test_an_accepted_message_without_a_turn_is_dispatched() -> None:
    bench = Bench()
    bench.store = MemoryStore(bench.clock)
    where = Address(channel="local", chat="s")
    item = InboxItem(id="i1", session="s", parts=(Text(text="hi"),), address=where, accepted=1, agent="operant")
    await bench.store.write(Accept(item=item))
    async with bench.running() as kernel:
        events = await ended(kernel)
    assert told(events) == ["Hello."]


async def test_a_reply_that_was_not_queued_is_queued_and_the_model_not_asked_again() -> None:
    bench = Bench()
    reply = ModelReplied(parts=(Text(text="Bought and paid for."),), model="scripted/one", provider="scripted")
    await log_of(bench, OPENED, RECEIVED, TurnStarted(), reply)
    async with bench.running() as kernel:
        events = await ended(kernel)
    assert told(events) == ["Bought and paid for."]
    assert bench.model.requests == []


async def test_a_finished_session_is_left_alone() -> None:
    bench = Bench()
    reply = ModelReplied(parts=(Text(text="Done."),), model="scripted/one", provider="scripted")
    await log_of(bench, OPENED, RECEIVED, TurnStarted(), reply, TurnEnded(reason="done"))
    async with bench.running() as kernel:
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(await kernel.store.events("s")) == 5
    assert bench.model.requests == []


async def test_a_turn_that_never_gets_further_ends_and_the_person_is_told() -> None:
    bench = Bench()
    again = TurnStarted(trigger="resume")
    await log_of(bench, OPENED, RECEIVED, TurnStarted(), again, again, again)
    bench.clock.advance(61)
    async with bench.running() as kernel:
        events = await ended(kernel)
    assert isinstance(events[-1].body, TurnEnded)
    assert events[-1].body.reason == "error"
    assert "got no further" in told(events)[0]
    assert bench.model.requests == []


async def test_a_few_kills_in_quick_succession_are_not_held_against_a_turn() -> None:
    bench = Bench()
    again = TurnStarted(trigger="resume")
    await log_of(bench, OPENED, RECEIVED, TurnStarted(), again, again, again)
    async with bench.running() as kernel:
        events = await ended(kernel)
    assert told(events) == ["Hello."]


async def _ask() -> Ask:
    return Ask(question="Really?")


async def test_a_question_survives_a_restart_and_its_answer_runs_the_call_once() -> None:
    bench, effects = Bench(model=ScriptedModel([CALL], "All done.")), Effects()
    asking = Registration(point="tool.before", author="asker", handler=_ask, phase="validate")
    first = with_tools(bench.kernel(), effects, "external")
    first.hooks.register(TOOL_BEFORE, asking)
    async with first.running():
        await say(first, "push x")
        while not await first.call(OWNER, ApprovalList()):
            await asyncio.sleep(0)
    second = with_tools(bench.kernel(), effects, "external")
    second.hooks.register(TOOL_BEFORE, asking)
    async with second.running():
        (question,) = await second.call(OWNER, ApprovalList())
        assert question.arguments == {"what": "x"}
        await second.call(OWNER, ApprovalAnswer(approval_id=question.approval_id, answer="allow"))
        events = await ended(second)
    assert effects.pushes == ["x"]
    assert sum(isinstance(event.body, ApprovalAsked) for event in events) == 1
    assert told(events) == ["All done."]


async def test_a_denied_call_tells_the_model_why() -> None:
    bench, effects = Bench(model=ScriptedModel([CALL], "Then not.")), Effects()
    kernel = with_tools(bench.kernel(), effects, "external")
    kernel.hooks.register(TOOL_BEFORE, Registration(point="tool.before", author="asker", handler=_ask))
    async with kernel.running():
        await say(kernel, "push x")
        while not (waiting := await kernel.call(OWNER, ApprovalList())):
            await asyncio.sleep(0)
        answer = ApprovalAnswer(approval_id=waiting[0].approval_id, answer="deny", reason="not today")
        await kernel.call(OWNER, answer)
        events = await ended(kernel)
    assert effects.pushes == []
    assert told(events) == ["Then not."]
    assert "not today" in str(bench.model.requests[1].messages[-1].parts)


async def test_a_stopped_store_keeps_the_turn_open_and_it_goes_on_when_the_store_does() -> None:
    bench, effects = Bench(model=ScriptedModel([CALL], "All done.")), Effects()
    kernel = with_tools(bench.kernel(), effects, "external")
    bench.model.hold = asyncio.Event()
    async with kernel.running():
        await say(kernel, "push x")
        while not bench.model.requests:
            await asyncio.sleep(0)
        assert bench.store is not None
        bench.store.stopped = "The disk is full."
        bench.model.hold.set()
        while kernel.sessions.working:
            await asyncio.sleep(0)
        assert effects.pushes == []
        bench.store.resume()
        bench.model.script([CALL], "All done.")
        events = await ended(kernel)
    assert effects.pushes == ["x"]
    assert told(events) == ["All done."]


@pytest.mark.parametrize("years", [1, -1])
async def test_a_clock_that_jumps_starts_no_storm_and_freezes_nothing(years: int) -> None:
    bench = Bench(model=ScriptedModel("one", "two"))
    async with bench.running() as kernel:
        await say(kernel, "a")
        await ended(kernel)
        bench.clock.advance(years * 365 * 86_400)
        await say(kernel, "b")
        events = await ended(kernel, turns=2)
    assert told(events) == ["one", "two"]
    assert len(bench.model.requests) == 2
