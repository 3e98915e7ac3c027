"""Where a turn ends however it goes."""

from __future__ import annotations

from typing import Any

import pytest

from operant.ext.budget.limits import within_limits
from operant.sdk import Agent, ComputeInput, Limits, Progress, SessionInfo, Usage


async def refused(purpose: str = "turn", limits: Limits | None = None, **progress: Any) -> tuple[str, str] | None:
    about = ComputeInput(
        session=SessionInfo(key="s", agent="a"),
        agent=Agent(name="a", limits=limits or Limits()),
        model="m/m",
        progress=Progress(turn="t", **progress),
        estimate=100,
        purpose=purpose,
    )
    verdict = await within_limits(about)
    return None if verdict is None else (verdict.code, verdict.reason)


async def test_a_turn_may_make_all_its_steps_and_no_more() -> None:
    assert await refused(steps=24) is None
    assert await refused(steps=25) == ("max_steps", "I stopped after 25 steps. Say “continue” to go on.")


async def test_calls_made_on_behalf_of_a_turn_are_not_its_steps() -> None:
    assert await refused("compact", steps=25, repeated=9, malformed=9) is None


async def test_the_limit_of_tokens_includes_the_next_request() -> None:
    limits = Limits(turn_tokens=1_000)

    assert await refused(limits=limits, usage=Usage(input=800, output=100)) is None
    stopped = await refused(limits=limits, usage=Usage(input=800, output=101))
    assert stopped == (
        "budget",
        "I stopped at this turn's limit of tokens (901 of 1,000 tokens used). Say “continue” to go on.",
    )


async def test_calls_that_lead_nowhere_end_the_turn() -> None:
    assert await refused(repeated=2, malformed=2) is None
    repeated, malformed = await refused(repeated=3), await refused(malformed=3)

    assert repeated == ("error", "I stopped: I made the same call 4 times in a row and got no further.")
    assert malformed is not None and malformed[0] == "error" and "3 times in a row" in malformed[1]


@pytest.mark.parametrize("progress", ["steps", "repeated", "malformed"])
async def test_a_limit_of_zero_is_off(progress: str) -> None:
    limits = Limits(max_steps=0, repeated_calls=0, malformed_calls=0)

    assert await refused("turn", limits, **{progress: 10_000}) is None
