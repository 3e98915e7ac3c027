"""Handlers of hook points: order, phases, verdicts, failures."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from operant.kernel.errors import Invalid
from operant.kernel.hooks import Hooks, Registration
from operant.kernel.points import (
    COMPUTE_MODEL,
    DISPATCH_BEFORE,
    MESSAGE_BEFORE,
    TURN_ENDED,
    Ask,
    DispatchInput,
    Happened,
    MessageInput,
    MessageOutput,
    ModelOutput,
    Reject,
)
from operant.kernel.records import Agent, Event, Note, Text, text_of
from operant.sdk.testing.fakes import ScriptedModel
from operant.sdk.testing.system import Bench, ended, say

ABOUT = MessageInput(session="s", agent=Agent(name="a"), channel="local", chat="c")
START = MessageOutput(parts=(Text(text="hi"),))


def adds(word: str) -> object:
    async def handler(output: MessageOutput) -> MessageOutput:
        return msgspec.structs.replace(output, parts=(*output.parts, Text(text=word)))

    return handler


def at(author: str, handler: object, **more: object) -> Registration:
    return Registration(point="message.before", author=author, handler=handler, **more)  # type: ignore[arg-type]


async def words(hooks: Hooks) -> str:
    ruling = await hooks.run(MESSAGE_BEFORE, ABOUT, START)
    return text_of(ruling.output.parts)


async def test_handlers_run_by_tier_priority_and_name() -> None:
    hooks = Hooks()
    hooks.register(MESSAGE_BEFORE, at("z", adds("z"), tier="session"))
    hooks.register(MESSAGE_BEFORE, at("b", adds("b")))
    hooks.register(MESSAGE_BEFORE, at("a", adds("a")))
    hooks.register(MESSAGE_BEFORE, at("p", adds("p"), priority=10))
    assert await words(hooks) == "hipabz"


async def test_all_rewriters_run_before_any_validator() -> None:
    hooks = Hooks()
    seen: list[str] = []

    async def guard(output: MessageOutput) -> None:
        seen.append(text_of(output.parts))

    hooks.register(MESSAGE_BEFORE, at("guard", guard, phase="validate", priority=99))
    hooks.register(MESSAGE_BEFORE, at("late", adds("!"), tier="session"))
    await words(hooks)
    assert seen == ["hi!"]


async def test_a_validator_that_rewrites_has_failed_and_the_gate_is_closed() -> None:
    hooks = Hooks()
    hooks.register(MESSAGE_BEFORE, at("sly", adds("x"), phase="validate"))
    ruling = await hooks.run(MESSAGE_BEFORE, ABOUT, START)
    assert isinstance(ruling.verdict, Reject)
    assert ruling.notes[0].data["did"] == "failed"


async def raises() -> None:
    raise RuntimeError("boom")


async def never() -> None:
    await asyncio.Event().wait()


async def nonsense() -> object:
    return 42


@pytest.mark.parametrize("handler", [raises, never, nonsense])
async def test_a_guard_that_fails_does_not_let_pass(handler: object) -> None:
    hooks = Hooks()
    hooks.register(MESSAGE_BEFORE, at("guard", handler, timeout_s=0.01))
    ruling = await hooks.run(MESSAGE_BEFORE, ABOUT, START)
    assert isinstance(ruling.verdict, Reject)


@pytest.mark.parametrize("handler", [raises, never, nonsense])
async def test_what_is_registered_to_fail_open_is_skipped_and_noted(handler: object) -> None:
    hooks = Hooks()
    hooks.register(MESSAGE_BEFORE, at("extra", handler, timeout_s=0.01, fail="open"))
    ruling = await hooks.run(MESSAGE_BEFORE, ABOUT, START)
    assert ruling.output == START
    assert [note.data["did"] for note in ruling.notes] == ["failed"]


async def test_a_reject_wins_over_an_ask() -> None:
    hooks = Hooks()

    async def ask() -> Ask:
        return Ask(question="sure?")

    async def reject() -> Reject:
        return Reject(reason="no")

    hooks.register(MESSAGE_BEFORE, at("a", ask))
    hooks.register(MESSAGE_BEFORE, at("b", reject))
    ruling = await hooks.run(MESSAGE_BEFORE, ABOUT, START)
    assert ruling.verdict == Reject(reason="no")


async def test_wrong_parameters_fail_at_registration() -> None:
    async def handler(outptu: MessageOutput) -> None: ...

    with pytest.raises(Invalid, match="outptu"):
        Hooks().register(MESSAGE_BEFORE, at("typo", handler))


async def test_a_handler_is_never_inside_itself_and_depth_is_bounded() -> None:
    hooks = Hooks()
    depth = 0

    def nest(author: str) -> None:
        async def handler() -> None:
            nonlocal depth
            depth += 1
            await hooks.run(MESSAGE_BEFORE, ABOUT, START)

        hooks.register(MESSAGE_BEFORE, at(author, handler, fail="open"))

    for author in "abcdef":
        nest(author)
    await hooks.run(MESSAGE_BEFORE, ABOUT, START)
    assert depth <= 6 + 6 * 5 + 6 * 5 * 4 + 6 * 5 * 4 * 3


async def test_the_first_provider_that_answers_is_the_one() -> None:
    hooks = Hooks()

    async def silent() -> None:
        return None

    async def answers() -> ModelOutput:
        return ModelOutput(chain=("a/b",))

    hooks.register(COMPUTE_MODEL, Registration(point="compute.model", author="a", handler=silent))
    hooks.register(COMPUTE_MODEL, Registration(point="compute.model", author="b", handler=answers))
    assert await hooks.provide(COMPUTE_MODEL, None) == ModelOutput(chain=("a/b",))  # type: ignore[arg-type]


async def test_observers_see_events_in_order_and_a_full_queue_is_counted() -> None:
    hooks = Hooks()
    seen: list[int] = []
    first = asyncio.Event()
    go = asyncio.Event()

    async def observe(input: Happened) -> None:
        first.set()
        await go.wait()
        seen.append(input.event.seq)

    hooks.register(TURN_ENDED, Registration(point="turn.ended", author="slow", handler=observe))
    async with hooks:
        hooks.emit(TURN_ENDED, Happened(event=event(1)))
        await first.wait()
        for seq in range(2, 1_300):
            hooks.emit(TURN_ENDED, Happened(event=event(seq)))
        go.set()
        while len(seen) < 1_001:
            await asyncio.sleep(0)
    assert seen == list(range(1, 1_002))
    assert hooks.dropped == {"slow": 298}


def event(seq: int) -> Event:
    return Event(session="s", seq=seq, id="x", type="note", at=0, body=Note(kind="k"))


async def test_an_extension_s_other_guards_still_stand_inside_its_own_handler() -> None:
    hooks = Hooks()
    inner: list[object] = []

    async def calls() -> None:
        inner.append((await hooks.run(MESSAGE_BEFORE, ABOUT, START)).verdict)

    async def rejects() -> Reject:
        return Reject(reason="no")

    hooks.register(MESSAGE_BEFORE, at("one", calls, priority=9))
    hooks.register(MESSAGE_BEFORE, at("one", rejects))
    await hooks.run(MESSAGE_BEFORE, ABOUT, START)
    assert inner == [Reject(reason="no")]


async def test_a_turn_that_a_guard_began_is_still_guarded_by_it() -> None:
    """What a handler sets going outlives its call; there the handler is not inside itself any more."""
    bench = Bench(model=ScriptedModel("First.", "Second."))
    guarded: list[str] = []
    async with bench.running() as kernel:

        async def guard(input: DispatchInput) -> None:
            guarded.append(input.session)
            if input.session == "s":
                await say(kernel, "and this", "other")

        kernel.hooks.register(DISPATCH_BEFORE, Registration(point="dispatch.before", author="guard", handler=guard))
        await say(kernel, "hi")
        await ended(kernel)
        await ended(kernel, "other")
    assert guarded == ["s", "other"]
