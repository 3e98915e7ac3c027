"""Where model calls are paid: fitted to what is left, held before, settled after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from operant.ext.budget.calendar import day_of, days_before
from operant.ext.budget.cost import amount_of, at_least, at_most
from operant.ext.budget.ledger import Hold, Ledger, Owner, Scope
from operant.ext.budget.limits import within_limits
from operant.ext.budget.report import Reporter, UsageReport
from operant.ext.budget.settings import BudgetSettings, Purse
from operant.ext.budget.trees import Trees
from operant.ext.budget.wording import priceless, refusal
from operant.sdk import (
    COMPUTE_AFTER,
    COMPUTE_BEFORE,
    MODEL_FAILED,
    TURN_ENDED,
    ComputedInput,
    ComputedOutput,
    ComputeInput,
    ComputeOutput,
    Happened,
    Host,
    ModelFailed,
    Parameters,
    Reject,
    UsageRow,
)

_BACKGROUND = frozenset({"job", "heartbeat", "agent"})
_AMPLE = 32_768
"""Output tokens held for a call that has no limit of its own: hardly a reply is longer."""
_MODEST = 4_096
"""Output tokens that a call is limited to where the budget does not reach for an ample reply."""
_READ = frozenset({"content_filter", "cut", "empty", "malformed", "stalled"})
"""Kinds of failures before which a provider had begun to answer."""
_LAST = -1_000
"""Priority after everybody else: what is held must not be left behind by a later refusal."""


@asynccontextmanager
async def setup(host: Host, settings: BudgetSettings) -> AsyncGenerator[None]:
    """Limit, price and report model calls; budgets only where any is set."""
    host.hook(COMPUTE_BEFORE, within_limits, phase="validate")
    host.hook(COMPUTE_AFTER, Pricing(host).priced, priority=100)
    host.syscall(UsageReport, Reporter(host).report)
    if settings.binds:
        desk = Desk(host, settings)
        host.hook(COMPUTE_BEFORE, desk.fit, priority=_LAST)
        host.hook(COMPUTE_BEFORE, desk.reserve, phase="validate", priority=_LAST)
        host.hook(COMPUTE_AFTER, desk.settle, priority=_LAST)
        host.hook(MODEL_FAILED, desk.failed)
        host.hook(TURN_ENDED, desk.ended)
    yield


class Pricing:
    """Say on each reply what it cost."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def priced(self, input: ComputedInput, output: ComputedOutput) -> ComputedOutput | None:
        """Set the cost of a reply, where its provider did not and the price is known."""
        reply, price = output.reply, self._host.price(input.model)
        if price is None or reply.usage.usd:
            return None
        usd = price.of(reply.usage)
        if not usd:
            return None
        return msgspec.structs.replace(output, usd=usd)


class Desk:
    """Let a call pass only when every budget that it falls under can pay for it at its dearest."""

    def __init__(self, host: Host, settings: BudgetSettings) -> None:
        self._host = host
        self._settings = settings
        self._ledger = Ledger(day_of(host.clock.now()))
        self._loading = asyncio.Lock()
        self._loaded = False
        self._trees = Trees()

    async def fit(self, input: ComputeInput, output: ComputeOutput) -> ComputeOutput | Reject | None:
        """Limit a call's output where the budget does not reach for more; refuse it where nothing fits."""
        await self._load()
        if self._settings.turn.binds:
            await self._trees.place(self._host.kept, input.session)
            self._trees.note(input.session.key, amount_of(input.progress.usage))
        scopes = self._scopes(input)
        price = self._host.price(input.model)
        if price is None and any(scope.purse.usd is not None for scope in scopes):
            return Reject(reason=priceless(input.model), code="budget")
        wanted = output.parameters.max_output_tokens or _AMPLE
        if self._refused(input, wanted) is None:
            return None
        modest = min(wanted, _MODEST)
        refused = self._refused(input, modest)
        if refused is not None:
            return refused
        return ComputeOutput(parameters=_limited(output.parameters, modest))

    async def reserve(self, input: ComputeInput, output: ComputeOutput) -> Reject | None:
        """Hold what a call may cost, unless others took it meanwhile."""
        wanted = output.parameters.max_output_tokens or _AMPLE
        refused = self._refused(input, wanted)
        if refused is None:
            price = self._host.price(input.model)
            hold = Hold(
                amount=at_most(input.estimate, wanted, price),
                least=at_least(input.estimate, price),
                keys=frozenset(scope.key for scope in self._scopes(input)),
                made=self._host.clock.now(),
            )
            self._ledger.hold(_owner(input), hold)
        return refused

    async def settle(self, input: ComputedInput, output: ComputedOutput) -> None:
        """Count what a call did cost; one whose usage nobody reported costs what was held for it."""
        self._today()
        hold = self._ledger.release(_owner(input))
        cost = amount_of(output.reply.usage, output.usd)
        if hold is not None and not cost.tokens:
            cost = hold.amount
        self._ledger.spend([scope.key for scope in self._scopes(input)], cost)
        self._trees.add(input.session.key, cost)

    async def failed(self, input: Happened) -> None:
        """Let go of what was held for a call that failed, and count what it cost all the same.

        Nobody reports the usage of an answer that broke off, but its provider has read the question.
        """
        event = input.event
        if isinstance(event.body, ModelFailed):
            self._today()
            hold = self._ledger.release(Owner(session=event.session, purpose=event.body.purpose), event.at)
            if hold is not None:
                cost = amount_of(event.body.usage)
                read = event.body.error in _READ and not cost.tokens
                self._ledger.spend(hold.keys, hold.least if read else cost)

    async def ended(self, input: Happened) -> None:
        """Let go of what a turn's calls still hold, as after a stop; their questions have been read all the same."""
        self._today()
        self._trees.ended(input.event.session)
        for hold in self._ledger.release_session(input.event.session, input.event.at):
            self._ledger.spend(hold.keys, hold.least)

    def _refused(self, input: ComputeInput, output_tokens: int) -> Reject | None:
        self._today()
        wanted = at_most(input.estimate, output_tokens, self._host.price(input.model))
        short = self._ledger.short(_owner(input), self._scopes(input), wanted)
        if short is None:
            return None
        return Reject(reason=refusal(short, days_before(self._ledger.day, -1)), code="budget")

    def _scopes(self, input: ComputeInput | ComputedInput) -> tuple[Scope, ...]:
        """Return the budgets that a call falls under."""
        settings, progress = self._settings, input.progress
        key = input.session.key
        agent, user = input.agent.name.partition("/")[0], progress.author
        background = settings.background if progress.trigger in _BACKGROUND else Purse()
        turn = settings.turn if progress.turn else Purse()
        scopes = (
            Scope(kind="turn", name=self._trees.root(key), purse=turn, spent=self._trees.spent(key)),
            Scope(kind="session", name=input.session.key, purse=settings.session),
            Scope(kind="background", name="", purse=background),
            Scope(kind="user", name=user, purse=settings.users.get(user, Purse())),
            Scope(kind="agent", name=agent, purse=settings.agents.get(agent, Purse())),
            Scope(kind="day", name="", purse=settings.day),
        )
        return tuple(scope for scope in scopes if scope.purse.binds)

    def _today(self) -> None:
        self._ledger.turn_to(day_of(self._host.clock.now()))

    async def _load(self) -> None:
        """Read what was spent before this start, once; later calls are counted as they come back."""
        if self._loaded:
            return
        async with self._loading:
            if self._loaded:
                return
            today = day_of(self._host.clock.now())
            rows = await self._host.kept.usage("" if self._settings.session.binds else today)
            self._ledger.turn_to(today)
            for row in rows:
                self._count(row, today)
            self._loaded = True

    def _count(self, row: UsageRow, today: str) -> None:
        amount = amount_of(row.usage)
        if self._settings.session.binds:
            self._ledger.spend([("session", row.session)], amount)
        if row.day != today:
            return
        self._ledger.spend([("day", ""), ("agent", row.agent.partition("/")[0]), ("user", row.user)], amount)
        if row.purse == "background":
            self._ledger.spend([("background", "")], amount)


def _owner(input: ComputeInput | ComputedInput) -> Owner:
    return Owner(session=input.session.key, purpose=input.purpose)


def _limited(parameters: Parameters, tokens: int) -> Parameters:
    return msgspec.structs.replace(parameters, max_output_tokens=tokens)
