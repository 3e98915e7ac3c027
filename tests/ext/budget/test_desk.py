"""Budgets as the kernel meets them: before a call, after it, and when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operant.ext.budget.desk import setup
from operant.ext.budget.report import UsageReport
from operant.ext.budget.settings import BudgetSettings, Purse
from operant.sdk import (
    COMPUTE_AFTER,
    COMPUTE_BEFORE,
    MODEL_FAILED,
    OWNER,
    TURN_ENDED,
    Agent,
    ComputedInput,
    ComputedOutput,
    ComputeInput,
    ComputeOutput,
    Event,
    Happened,
    ModelFailed,
    Parameters,
    Price,
    Progress,
    Reject,
    Reply,
    SessionInfo,
    Text,
    Trigger,
    TurnEnded,
    Usage,
    UsageRow,
)
from tests.ext.conftest import PolicyHost

MODEL = "m/big"
LIMITED = Parameters(max_output_tokens=100)


class Books:
    """A store that knows what was used."""

    def __init__(self, rows: Sequence[UsageRow]) -> None:
        self.rows = rows

    async def usage(self, since_day: str = "") -> Sequence[UsageRow]:
        await asyncio.sleep(0)
        return [row for row in self.rows if row.day >= since_day]


class Office:
    """A system with budgets, and calls made in it."""

    def __init__(self, host: PolicyHost, rows: Sequence[UsageRow] = ()) -> None:
        self.host = host
        host.prices[MODEL] = Price(input=1.0, output=2.0, cached=0.1, cache_write=1.25)
        host.kept = Books(rows)

    def call(self, session: str = "s", **changes: Any) -> Call:
        return Call(self, session, **changes)


class Call:
    """One model call."""

    def __init__(
        self,
        office: Office,
        session: str,
        *,
        agent: str = "a",
        user: str = "",
        trigger: Trigger = "message",
        used: Usage | None = None,
        model: str = MODEL,
        purpose: str = "turn",
    ) -> None:
        self.host = office.host
        progress = Progress(turn=f"turn of {session}", trigger=trigger, author=user, usage=used or Usage())
        self.about: dict[str, Any] = {
            "session": SessionInfo(key=session, agent=agent),
            "agent": Agent(name=agent),
            "model": model,
            "progress": progress,
            "purpose": purpose,
        }

    async def begin(self, estimate: int, parameters: Parameters = LIMITED) -> ComputeOutput | Reject:
        about = ComputeInput(**self.about, estimate=estimate)
        return await self.host.run(COMPUTE_BEFORE, about, ComputeOutput(parameters=parameters))

    async def end(self, usage: Usage) -> Usage:
        reply = Reply(parts=(Text(text="x"),), model="big", provider="m", usage=usage)
        output = await self.host.run(COMPUTE_AFTER, ComputedInput(**self.about), ComputedOutput(reply=reply))
        usage = output.reply.usage
        return usage if output.usd is None else msgspec.structs.replace(usage, usd=output.usd)

    async def fail(self, at: int | None = None, error: str = "server") -> None:
        body = ModelFailed(model=MODEL, provider="m", error=error, purpose=self.about["purpose"])
        await self.host.tell(MODEL_FAILED, Happened(event=self._event(body, at)))

    async def stop(self) -> None:
        await self.host.tell(TURN_ENDED, Happened(event=self._event(TurnEnded(reason="stopped"), None)))

    def _event(self, body: Any, at: int | None) -> Event:
        when = self.host.clock.now() if at is None else at
        return Event(session=self.about["session"].key, seq=9, id="e", type=body.type, at=when, body=body)


@pytest.fixture
async def open_office(policy_host: PolicyHost) -> Any:
    async with AsyncExitStack() as stack:

        async def opened(budgets: BudgetSettings, rows: Sequence[UsageRow] = ()) -> Office:
            await stack.enter_async_context(setup(policy_host, budgets))  # type: ignore[arg-type]
            return Office(policy_host, rows)

        yield opened


def row(day: str, tokens: int, **changes: Any) -> UsageRow:
    base: dict[str, Any] = {"session": "old", "agent": "a", "user": "", "model": MODEL, "purse": "chat"}
    return UsageRow(**{**base, **changes}, day=day, usage=Usage(input=tokens, usd=tokens / 1_000_000))


async def test_without_budgets_nobody_stands_before_a_call_but_the_limits(open_office: Any) -> None:
    office = await open_office(BudgetSettings(agents={"a": Purse()}))

    assert office.host.hooks_at(COMPUTE_BEFORE) == 1
    assert office.host.hooks_at(MODEL_FAILED) == 0
    assert await office.call().begin(10**9) == ComputeOutput(parameters=LIMITED)


async def test_a_reply_says_what_it_cost(open_office: Any) -> None:
    office = await open_office(BudgetSettings())

    usage = await office.call().end(Usage(input=1_000, cached=500, cache_write=200, output=100))

    assert usage.usd == pytest.approx((300 * 1.0 + 500 * 0.1 + 200 * 1.25 + 100 * 2.0) / 1_000_000)


async def test_what_the_provider_says_of_the_cost_stands(open_office: Any) -> None:
    office = await open_office(BudgetSettings())

    assert (await office.call().end(Usage(input=1_000, usd=0.5))).usd == 0.5
    assert (await office.call(model="m/unknown").end(Usage(input=1_000))).usd == 0.0


async def test_the_line_says_what_is_used_the_limit_and_when_it_starts_anew(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(usd=1.0)), [row("2026-11-20", 990_000)])

    refused = await office.call().begin(20_000)

    assert refused == Reject(
        reason="Today's budget does not reach: $0.99 of $1.00 used, and the next call may take up to $0.03. "
        "It starts anew on 2026-11-21 at 00:00 UTC.",
        code="budget",
    )


async def test_the_next_day_starts_anew(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=1_000)), [row("2026-11-20", 950)])
    before = await office.call().begin(10)
    office.host.clock.advance(4 * 3600)
    after = await office.call().begin(10)

    assert isinstance(before, Reject) and "950 tokens of 1,000 tokens used" in before.reason
    assert isinstance(after, ComputeOutput)


async def test_yesterdays_use_is_only_a_sessions(open_office: Any) -> None:
    budgets = BudgetSettings(day=Purse(tokens=1_000), session=Purse(tokens=1_000))
    office = await open_office(budgets, [row("2026-11-19", 950, session="s")])

    refused, other = await office.call("s").begin(10), await office.call("t").begin(10)

    assert isinstance(refused, Reject) and refused.reason.startswith("The budget of this session does not reach")
    assert isinstance(other, ComputeOutput)


async def test_every_budget_binds_only_its_own(open_office: Any) -> None:
    budgets = BudgetSettings(
        agents={"a": Purse(tokens=500)}, users={"ann": Purse(tokens=600)}, background=Purse(tokens=700)
    )
    office = await open_office(budgets)

    async def line(**changes: Any) -> str:
        verdict = await office.call(**changes).begin(650)
        return verdict.reason.partition(":")[0] if isinstance(verdict, Reject) else ""

    assert await line(agent="b") == ""
    assert await line(agent="a") == "Today's budget of agent a does not reach"
    assert await line(agent="b", user="ann") == "Today's budget of ann does not reach"
    for trigger in ("job", "heartbeat", "agent"):
        assert await line(agent="b", trigger=trigger) == "Today's budget for background work does not reach"


async def test_what_a_turn_used_is_known_from_the_log(open_office: Any) -> None:
    office = await open_office(BudgetSettings(turn=Purse(tokens=1_000)))

    refused = await office.call(used=Usage(input=800, output=50)).begin(100)
    new_turn = await office.call().begin(100)

    assert isinstance(refused, Reject) and refused.reason.endswith("Say “continue” to go on.")
    assert isinstance(new_turn, ComputeOutput)


async def test_a_money_budget_needs_a_price(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(usd=5, tokens=10_000)))

    refused = await office.call(model="local/x").begin(10)

    assert refused == Reject(
        reason="No price is known for local/x, so a money budget cannot bind: set providers.local.prices, "
        "or limit tokens instead.",
        code="budget",
    )


async def test_a_token_budget_needs_none(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=10_000)))

    assert isinstance(await office.call(model="local/x").begin(10), ComputeOutput)


async def test_near_the_limit_a_reply_is_limited_to_what_can_be_paid(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=50_000)))

    ample = await office.call("s").begin(10_000, Parameters(temperature=0.5))
    modest = await office.call("t").begin(1_000, Parameters(temperature=0.5))
    nothing = await office.call("u").begin(1_000, Parameters())

    assert ample == ComputeOutput(parameters=Parameters(temperature=0.5))
    assert modest == ComputeOutput(parameters=Parameters(temperature=0.5, max_output_tokens=4_096))
    assert isinstance(nothing, Reject)
    assert "0 tokens of 50,000 tokens used, 47,864 tokens held for calls under way" in nothing.reason


async def test_a_call_that_came_back_frees_what_it_did_not_use(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=1_000)))
    first = office.call("s")
    await first.begin(800)

    assert isinstance(await office.call("t").begin(800), Reject)
    await first.end(Usage(input=50, output=10))
    assert isinstance(await office.call("t").begin(800), ComputeOutput)


async def test_a_call_whose_use_nobody_reported_costs_what_was_held(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=1_000)))
    first = office.call("s")
    await first.begin(800)
    await first.end(Usage(calls=1))

    assert isinstance(await office.call("t").begin(100), Reject)


async def test_trying_again_holds_once(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=1_000)))

    for _ in range(5):
        assert isinstance(await office.call("s").begin(800), ComputeOutput)


async def test_a_call_that_failed_frees_everything(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=1_000)))
    failed = office.call("s", purpose="compact")

    await failed.begin(800)
    await failed.fail()
    assert isinstance(await office.call("t").begin(800), ComputeOutput)


async def test_what_was_stopped_or_broke_off_counts_its_question(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=1_000)))
    stopped, cut = office.call("s"), office.call("t")

    assert isinstance(await stopped.begin(300), ComputeOutput)
    await stopped.stop()
    assert isinstance(await cut.begin(400), ComputeOutput)
    await cut.fail(error="cut")
    refused = await office.call("u").begin(250)

    assert isinstance(refused, Reject)
    assert refused.reason.startswith("Today's budget does not reach: 700 tokens of 1,000 tokens used")
    assert isinstance(await office.call("u").begin(200), ComputeOutput)


async def test_news_of_an_old_failure_does_not_free_the_next_try(open_office: Any) -> None:
    office = await open_office(BudgetSettings(day=Purse(tokens=1_000)))
    before = office.host.clock.now()
    office.host.clock.advance(1)
    again = office.call("s")
    await again.begin(800)

    await again.fail(at=before)

    assert isinstance(await office.call("t").begin(800), Reject)


endings = st.sampled_from(["end", "fail", "stop"])
calls = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4_000), st.integers(0, 4_000), endings), max_size=30)


@given(calls=calls, limit=st.integers(0, 30_000), dollars=st.booleans())
@settings(max_examples=100, deadline=None)
def test_side_by_side_sessions_never_spend_more_than_there_is(
    calls: list[tuple[int, int, int, str]], limit: int, dollars: bool
) -> None:
    """Each call uses at most what it was estimated and limited to; however they overlap, the sum fits."""

    async def spent() -> Usage:
        host = PolicyHost()
        purse = Purse(usd=limit / 1_000_000) if dollars else Purse(tokens=limit)
        total: list[Usage] = []
        async with setup(host, BudgetSettings(day=purse)):  # type: ignore[arg-type]
            office = Office(host)

            async def session(number: int) -> None:
                for which, estimate, output, ending in calls:
                    if which != number:
                        continue
                    call = office.call(f"s{number}")
                    passed = await call.begin(estimate, Parameters(max_output_tokens=output or None))
                    await asyncio.sleep(0)
                    if isinstance(passed, Reject):
                        continue
                    if ending == "end":
                        most = passed.parameters.max_output_tokens or 32_768
                        total.append(await call.end(Usage(input=estimate, output=most)))
                    else:
                        await (call.fail() if ending == "fail" else call.stop())

            async with asyncio.TaskGroup() as group:
                for number in range(4):
                    group.create_task(session(number))
        return sum(total, Usage())

    used = asyncio.run(spent())
    assert (used.usd <= limit / 1_000_000 + 1e-9) if dollars else (used.input + used.output <= limit)


async def test_the_report_takes_usage_apart(open_office: Any) -> None:
    rows = [
        row("2026-11-13", 900),
        row("2026-11-14", 100, agent="b"),
        row("2026-11-20", 300, session="new", model="m/small", purse="background"),
    ]
    office = await open_office(BudgetSettings(), rows)
    report = office.host.served[UsageReport]

    week = await report(OWNER, UsageReport(range="7d"))
    today = await report(OWNER, UsageReport(range="today"))
    everything = await report(OWNER, UsageReport(range="all"))

    assert week.since_day == "2026-11-14"
    assert [(line.name, line.usage.input) for line in week.days] == [("2026-11-14", 100), ("2026-11-20", 300)]
    assert [line.name for line in week.agents] == ["a", "b"]
    assert [line.name for line in week.models] == ["m/small", MODEL]
    assert [line.name for line in week.sessions] == ["new", "old"]
    assert [line.name for line in week.purses] == ["background", "chat"]
    assert today.total.usage.input == 300
    assert (everything.since_day, everything.total.usage.input) == ("", 1_300)


async def test_the_report_tells_the_cached_share(open_office: Any) -> None:
    usage = Usage(input=1_000, cached=750, output=1)
    one = UsageRow(day="2026-11-20", session="s", agent="a", user="", model="m", purse="chat", usage=usage)
    office = await open_office(BudgetSettings(), [one])

    report = await office.host.served[UsageReport](OWNER, UsageReport(range="today"))
    nothing = await open_office(BudgetSettings(), [])

    assert report.total.cached_share == 0.75
    empty = await nothing.host.served[UsageReport](OWNER, UsageReport(range="today"))
    assert (empty.total.cached_share, empty.days) == (0.0, ())
