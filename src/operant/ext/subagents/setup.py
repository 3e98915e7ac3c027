"""Offer sub-agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from operant.ext.subagents.foreman import Foreman, is_open
from operant.ext.subagents.questions import Questions
from operant.ext.subagents.roster import Child, Roster
from operant.ext.subagents.settings import SubagentSettings
from operant.ext.subagents.spending import Spending
from operant.ext.subagents.tool import Offer
from operant.ext.subagents.wording import NOTE
from operant.sdk import (
    APPROVAL_ANSWERED,
    APPROVAL_ASKED,
    COMPUTE_AFTER,
    COMPUTE_BEFORE,
    DAEMON_STARTED,
    DISPATCH_BEFORE,
    TURN_ENDED,
    DispatchInput,
    DispatchOutput,
    Happened,
    Host,
    Reject,
    TurnEnded,
)

_COUNTED = -2_000
"""After everybody who may still change a reply."""


@asynccontextmanager
async def setup(host: Host, settings: SubagentSettings) -> AsyncGenerator[None]:
    """Offer sub-agents while the context is open."""
    roster = Roster(host)
    foreman = Foreman(host, settings, roster)
    spending = Spending(host, roster)
    questions = Questions(host, roster)
    watch = Watch(host, roster, foreman, spending)
    host.toolbox(Offer(foreman, settings))
    host.hook(DISPATCH_BEFORE, watch.arrived)
    host.hook(DISPATCH_BEFORE, watch.may_begin, phase="validate")
    host.hook(COMPUTE_BEFORE, spending.within, phase="validate")
    host.hook(COMPUTE_AFTER, spending.count, priority=_COUNTED)
    host.hook(APPROVAL_ASKED, questions.asked)
    host.hook(APPROVAL_ANSWERED, questions.answered)
    host.hook(TURN_ENDED, watch.ended)
    host.hook(DAEMON_STARTED, watch.started)
    async with foreman.open():
        yield


class Watch:
    """See to it that sub-agents live no longer than what they work for."""

    def __init__(self, host: Host, roster: Roster, foreman: Foreman, spending: Spending) -> None:
        self._host = host
        self._roster = roster
        self._foreman = foreman
        self._spending = spending

    async def arrived(self, input: DispatchInput, output: DispatchOutput) -> DispatchOutput | None:
        """Tell a sub-agent what it is, beside its task."""
        child = await self._roster.get(input.session)
        if child is None or input.item.external_id != child.session:
            return None
        note = NOTE.format(parent=child.parent_agent)
        return msgspec.structs.replace(output, ambient=f"{output.ambient}\n{note}" if output.ambient else note)

    async def may_begin(self, input: DispatchInput) -> Reject | None:
        """Refuse a task that was taken back before it began."""
        child = await self._roster.get(input.session)
        return Reject(reason="Stopped.", code="stopped") if child is not None and child.state == "stopped" else None

    async def ended(self, input: Happened) -> None:
        """Stop those that worked for a turn that is over; a turn that a person stopped takes all of them with it."""
        session, turn, body = input.event.session, input.event.turn, input.event.body
        self._spending.forget(session)
        children = await self._roster.of_parent(session)
        if not children:
            return
        stopped = isinstance(body, TurnEnded) and body.reason == "stopped"
        await self._foreman.stop([one for one in children if stopped or (one.wait and one.turn == turn)])
        await self._sweep(session)

    async def started(self) -> None:
        """Take up what was left: results that nobody waits for, and work whose turn had ended."""
        for child in list((await self._roster.all()).values()):
            if not child.wait and child.state in ("open", "reporting"):
                self._foreman.send_off([child])
            elif child.state == "stopped" or (child.state == "open" and not await is_open(self._host, child.parent)):
                await self._foreman.stop([msgspec.structs.replace(child, state="open")])

    async def _sweep(self, root: str) -> None:
        """Forget the trees below a session in which nobody works any more."""
        known = [one for one in (await self._roster.all()).values() if one.root == root]
        busy = {one.root_turn for one in known if await self._goes_on(one)}
        await self._roster.drop([one for one in known if one.root_turn not in busy])

    async def _goes_on(self, child: Child) -> bool:
        """Tell whether anything may still come of one; a stopped one is remembered until its task cannot begin."""
        if child.state == "stopped":
            waits = await self._host.kept.inbox(child.session)
            return bool(waits) or await is_open(self._host, child.session)
        return child.state in ("open", "reporting")
