"""Retry, the next model, compact once, or an honest end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from operant.ext.providers.chain import Chain
from operant.ext.providers.choices import Choices
from operant.sdk import Agent, ErrorInput, ModelInput, SessionInfo
from operant.sdk.testing.fakes import CountingIds, ManualClock
from operant.sdk.testing.store import MemoryStore

AGENT = Agent(name="a", models=("one/x", "two/y"))
FAILED = ErrorInput(
    session="s",
    agent=AGENT,
    model="one/x",
    chain=AGENT.models,
    kind="server",
    sentence="It is down.",
    retriable=True,
    retry_after=None,
    attempt=1,
)


def chain(clock: ManualClock | None = None) -> Chain:
    clock = clock or ManualClock()
    host: Any = SimpleNamespace(clock=clock, ids=CountingIds(), kept=MemoryStore(clock))
    return Chain(host, ("found/z",), Choices(host))


def but(**changes: Any) -> ErrorInput:
    return msgspec.structs.replace(FAILED, **changes)


async def test_what_may_work_a_moment_later_is_tried_again_with_growing_pauses() -> None:
    rules = chain()
    first, second = await rules.decide(FAILED), await rules.decide(but(attempt=2))
    assert (first.then, second.then) == ("retry", "retry")
    assert 0 < first.wait_s < second.wait_s


async def test_the_provider_says_how_long_to_wait_and_too_long_means_the_next_model() -> None:
    assert (await chain().decide(but(retry_after=7.0))).wait_s == 7.0
    assert (await chain().decide(but(retry_after=3600.0))).then == "next"


async def test_after_the_last_attempt_the_next_model_then_an_end_that_names_what_was_tried() -> None:
    decision = await chain().decide(but(attempt=3))
    assert (decision.then, decision.model) == ("next", "two/y")
    end = await chain().decide(but(attempt=3, model="two/y"))
    assert end.then == "fail"
    assert "one/x, two/y" in end.sentence
    assert "It is down." in end.sentence


async def test_a_wrong_key_is_not_tried_again() -> None:
    assert (await chain().decide(but(kind="auth", retriable=False))).then == "next"


async def test_too_long_compacts_once() -> None:
    assert (await chain().decide(but(kind="context_overflow", retriable=False))).then == "compact"
    again = await chain().decide(but(kind="context_overflow", retriable=False, compacted=True))
    assert again.then == "fail"


async def test_an_empty_answer_is_retried_once() -> None:
    assert (await chain().decide(but(kind="empty"))).then == "retry"
    assert (await chain().decide(but(kind="empty", attempt=2))).then == "next"


async def test_a_failed_model_comes_last_until_it_has_cooled_down() -> None:
    clock = ManualClock()
    rules = chain(clock)
    await rules.decide(but(attempt=3))
    about = ModelInput(session=SessionInfo(key="s", agent="a"), agent=AGENT)
    assert (await rules.choose(about)).chain == ("two/y", "one/x")
    clock.advance(121)
    assert (await rules.choose(about)).chain == ("one/x", "two/y")


async def test_the_sessions_own_model_comes_first_and_what_was_found_serves_nameless_agents() -> None:
    rules = chain()
    own = ModelInput(session=SessionInfo(key="s", agent="a", model="my/own"), agent=AGENT)
    assert (await rules.choose(own)).chain == ("my/own", "one/x", "two/y")
    nameless = ModelInput(session=SessionInfo(key="s", agent="b"), agent=Agent(name="b"))
    assert (await rules.choose(nameless)).chain == ("found/z",)
