"""A turn from the message to the reply, through the syscalls, over fakes."""

from __future__ import annotations

import asyncio

from operant.kernel.errors import ModelError
from operant.kernel.records import (
    OWNER,
    Agent,
    Limits,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    Text,
    ToolCall,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from operant.kernel.syscalls import SessionDispatch, SessionHistory, SessionStop
from operant.sdk.testing.fakes import ScriptedModel
from operant.sdk.testing.system import Bench, ended, say, told
from operant.sdk.tool import tool


def call(name: str, arguments: str = "{}", id: str = "c1") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


class Hands:
    """Tools that note what they do."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()

        @tool(effect="read")
        async def look(what: str = "around") -> str:
            """Look."""
            self.did.append(f"look {what}")
            return f"saw {what}"

        @tool(effect="external")
        async def push(what: str) -> str:
            """Push."""
            self.did.append(f"push {what}")
            return "pushed"

        @tool(effect="external")
        async def wait() -> str:
            """Wait to be let go."""
            self.entered.set()
            await self.leave.wait()
            self.did.append("waited")
            return "done waiting"

        self.tools = (look, push, wait)


async def test_a_message_is_answered_and_everything_is_on_record() -> None:
    bench = Bench(model=ScriptedModel("Hello."))
    async with bench.running() as kernel:
        await say(kernel, "hi")
        events = await ended(kernel)
    assert told(events) == ["Hello."]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.type for event in events] == [
        "session.opened",
        "message.received",
        "turn.started",
        "context.opened",
        "model.replied",
        "message.queued",
        "message.delivered",
        "turn.ended",
    ]


async def test_every_call_of_a_reply_runs_with_its_own_arguments() -> None:
    hands = Hands()
    calls = [call("look", '{"what": "left"}', "a"), call("look", '{"what": "right"}', "b")]
    bench = Bench(model=ScriptedModel(calls, "Both seen."))
    async with bench.running() as kernel:
        for one in hands.tools:
            kernel.gate.register(one)
        await say(kernel, "look")
        events = await ended(kernel)
    assert sorted(hands.did) == ["look left", "look right"]
    assert told(events) == ["Both seen."]
    sent = bench.model.requests[1].messages
    assert [message.role for message in sent] == ["user", "assistant", "tool", "tool"]


async def test_broken_arguments_go_back_to_the_model_and_nothing_runs() -> None:
    hands = Hands()
    bench = Bench(model=ScriptedModel([call("push", '{"what": ')], [call("push", '{"whit": 1}')], "I give up."))
    async with bench.running() as kernel:
        for one in hands.tools:
            kernel.gate.register(one)
        await say(kernel, "push")
        events = await ended(kernel)
    assert hands.did == []
    outcomes = [event.body.outcome for event in events if isinstance(event.body, ToolEnded)]
    assert outcomes == ["error", "error"]
    assert "not a JSON object" in str(bench.model.requests[1].messages[-1].parts)


async def test_an_unknown_or_forbidden_tool_is_an_answer_to_the_model() -> None:
    hands = Hands()
    bench = Bench(model=ScriptedModel([call("fly"), call("push", '{"what": "x"}', "c2")], "No."))
    bench.agents.put(_agent(tools=("look",)))
    async with bench.running() as kernel:
        for one in hands.tools:
            kernel.gate.register(one)
        await say(kernel, "fly")
        events = await ended(kernel)
    assert hands.did == []
    assert [event.body.outcome for event in events if isinstance(event.body, ToolEnded)] == ["error", "error"]


def _agent(*, tools: tuple[str, ...] = ("*",), **limits: float) -> Agent:
    from operant.kernel.records import Permissions

    return Agent(
        name="operant",
        models=("scripted/one",),
        permissions=Permissions(tools=tools),
        limits=Limits(**limits),  # type: ignore[arg-type]
    )


async def test_a_message_that_arrives_in_a_turn_joins_it_at_the_next_step() -> None:
    hands = Hands()
    bench = Bench(model=ScriptedModel([call("wait")], "Done with both."))
    async with bench.running() as kernel:
        for one in hands.tools:
            kernel.gate.register(one)
        await say(kernel, "first")
        await hands.entered.wait()
        await say(kernel, "and also this")
        hands.leave.set()
        events = await ended(kernel)
    assert told(events) == ["Done with both."]
    assert sum(isinstance(event.body, TurnStarted) for event in events) == 1
    words = [str(message.parts) for message in bench.model.requests[1].messages if message.role == "user"]
    assert "and also this" in words[-1]


async def test_queued_messages_get_turns_of_their_own_in_order() -> None:
    bench = Bench(model=ScriptedModel("one", "two", "three"))
    bench.agents.put(Agent(name="operant", models=("scripted/one",), arrival="queue"))
    bench.model.hold = asyncio.Event()
    async with bench.running() as kernel:
        for text in ("a", "b", "c"):
            await say(kernel, text)
        bench.model.hold.set()
        events = await ended(kernel, turns=3)
    assert told(events) == ["one", "two", "three"]


async def test_stop_ends_the_turn_and_the_session_is_usable_at_once() -> None:
    hands = Hands()
    bench = Bench(model=ScriptedModel([call("wait")], "Again."))
    async with bench.running() as kernel:
        for one in hands.tools:
            kernel.gate.register(one)
        await say(kernel, "work")
        await hands.entered.wait()
        stopped = await kernel.call(OWNER, SessionStop(session="s"))
        events = await ended(kernel)
        assert stopped.stopped
        assert [event.body.outcome for event in events if isinstance(event.body, ToolEnded)] == ["cancelled"]
        assert events[-1].body.reason == "stopped"  # type: ignore[union-attr]
        await say(kernel, "hello?")
        events = await ended(kernel, turns=2)
    assert told(events) == ["Again."]
    assert hands.did == []


async def test_a_stale_stop_does_not_touch_the_next_turn() -> None:
    bench = Bench(model=ScriptedModel("one", "two"))
    async with bench.running() as kernel:
        await say(kernel, "a")
        events = await ended(kernel)
        old = next(event.turn for event in events if event.turn)
        bench.model.hold = asyncio.Event()
        await say(kernel, "b")
        while not bench.model.requests[1:]:
            await asyncio.sleep(0)
        assert not (await kernel.call(OWNER, SessionStop(session="s", turn=old))).stopped
        bench.model.hold.set()
        events = await ended(kernel, turns=2)
    assert told(events) == ["one", "two"]


async def test_the_same_external_message_is_taken_once() -> None:
    bench = Bench()
    async with bench.running() as kernel:
        first = await say(kernel, "hi", external_id="42")
        again = await say(kernel, "hi", external_id="42")
        events = await ended(kernel)
    assert not first.repeat
    assert again.repeat
    assert again.inbox_id == first.inbox_id
    assert sum(isinstance(event.body, MessageReceived) for event in events) == 1


async def test_a_failing_model_without_policies_ends_the_turn_with_its_sentence() -> None:
    bench = Bench(model=ScriptedModel(ModelError("server", "The provider is down.")))
    async with bench.running() as kernel:
        await say(kernel, "hi")
        events = await ended(kernel)
    assert told(events) == ["The provider is down."]
    assert any(isinstance(event.body, ModelFailed) for event in events)


async def test_without_policies_the_turn_names_what_is_missing() -> None:
    bench = Bench()
    async with bench.running(policies=False) as kernel:
        await say(kernel, "hi")
        events = await ended(kernel)
    assert isinstance(events[-1].body, TurnEnded)
    assert events[-1].body.reason == "error"
    assert "compute.model" in events[-1].body.sentence


async def test_two_sessions_work_side_by_side() -> None:
    bench = Bench(model=ScriptedModel("ok"))
    bench.model.hold = asyncio.Event()
    async with bench.running() as kernel:
        await say(kernel, "a", "one")
        await say(kernel, "b", "two")
        while len(bench.model.requests) < 2:
            await asyncio.sleep(0)
        bench.model.hold.set()
        await ended(kernel, "one")
        await ended(kernel, "two")


async def test_the_time_limit_of_a_turn_is_told_to_the_person() -> None:
    hands = Hands()
    bench = Bench(model=ScriptedModel([call("wait")]))
    bench.agents.put(_agent(turn_s=0.05))
    async with bench.running() as kernel:
        for one in hands.tools:
            kernel.gate.register(one)
        await say(kernel, "work")
        events = await ended(kernel)
    assert "time limit" in told(events)[0]


async def test_a_follower_sees_every_event_once_and_can_resume() -> None:
    bench = Bench(model=ScriptedModel("one", "two"))
    async with bench.running() as kernel:
        await say(kernel, "a")
        await ended(kernel)
        await say(kernel, "b")
        events = await ended(kernel, turns=2)
        seen: list[int] = []
        async for one in kernel.follow("s", after=3):
            seen.append(one.seq)  # type: ignore[union-attr]
            if len(seen) == len(events) - 3:
                break
    assert seen == list(range(4, len(events) + 1))


async def test_history_can_be_read_through_the_syscalls() -> None:
    bench = Bench()
    async with bench.running() as kernel:
        await kernel.call(OWNER, SessionDispatch(session="s", parts=(Text(text="hi"),)))
        await ended(kernel)
        events = await kernel.call(OWNER, SessionHistory(session="s", after=4))
    assert isinstance(events[0].body, ModelReplied)


async def test_a_model_that_goes_silent_is_noticed_then_given_up_with_a_clear_line() -> None:
    bench = Bench()
    bench.model.hold = asyncio.Event()
    bench.agents.put(_agent(stall_notice_s=0.02, stall_s=0.2))
    async with bench.running() as kernel:
        seen: list[str] = []
        following = kernel.follow("s")
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        await say(kernel, "hi")
        while not seen or seen[-1] != "notice":
            one = await waiting
            seen.append(getattr(one, "kind", ""))
            waiting = asyncio.ensure_future(anext(following))
        waiting.cancel()
        events = await ended(kernel)
    assert "sent nothing" in told(events)[0]


async def test_fifty_turns_in_flight_survive_a_stop_and_are_finished_after_it() -> None:
    bench = Bench()
    bench.model.hold = asyncio.Event()
    async with bench.running() as kernel:
        for number in range(50):
            await say(kernel, "hi", f"s{number}")
        while len(bench.model.requests) < 50:
            await asyncio.sleep(0)
        assert await kernel.drain(0.1) == 50
    bench.model.hold = None
    async with bench.running() as kernel:
        for number in range(50):
            assert told(await ended(kernel, f"s{number}")) == ["Hello."]
