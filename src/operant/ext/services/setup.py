"""Run the services of skills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing

from operant.ext.services.calls import OwnCalls, SecretGet, ServiceCalls, StateDelete, StateGet, StateList, StateSet
from operant.ext.services.remote import Wing
from operant.ext.services.roster import Roster
from operant.ext.services.settings import ServiceSettings
from operant.ext.services.timers import TimerClear, Timers, TimerSet
from operant.ext.services.watch import Watch
from operant.ext.services.workshop import Workshop
from operant.sdk import (
    TURN_ENDED,
    TURN_STARTED,
    Happened,
    Host,
    ServiceGrant,
    ServiceList,
    ServiceLogs,
    ServiceRevoke,
    SkillReload,
    SkillStart,
    SkillStop,
)


@asynccontextmanager
async def setup(host: Host, settings: ServiceSettings) -> AsyncGenerator[None]:
    """Run services while the context is open."""
    with closing(Workshop(host, settings)) as workshop:
        async with asyncio.TaskGroup() as group, _working(host, Roster(host, settings, group, workshop), group):
            yield


@asynccontextmanager
async def _working(host: Host, roster: Roster, group: asyncio.TaskGroup) -> AsyncGenerator[None]:
    timers = Timers(host, roster)
    watch = Watch(host, roster)
    tasks: list[asyncio.Task[None]] = []

    async def begin() -> None:
        await roster.begin()
        await timers.load()
        tasks.append(group.create_task(timers.run()))
        if host.serving:
            tasks.append(group.create_task(watch.run()))

    async def turn_began(input: Happened) -> None:
        for post in roster.posts:
            post.keeper.busy.add(input.event.session)

    async def turn_ended(input: Happened) -> None:
        for post in roster.posts:
            post.keeper.over(input.event.session)

    host.before_work(begin)
    host.mount(Wing(roster).mount())
    host.toolbox(roster.tools)
    host.shell_commands(roster.commands)
    host.hook(TURN_STARTED, turn_began)
    host.hook(TURN_ENDED, turn_ended)
    _offer(host, ServiceCalls(roster))
    _offer_own(host, OwnCalls(host, roster), timers)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        roster.end()


def _offer(host: Host, calls: ServiceCalls) -> None:
    host.syscall(ServiceList, calls.list)
    host.syscall(ServiceGrant, calls.grant)
    host.syscall(ServiceRevoke, calls.revoke)
    host.syscall(ServiceLogs, calls.logs)
    host.syscall(SkillStart, calls.start)
    host.syscall(SkillStop, calls.stop)
    host.syscall(SkillReload, calls.reload)


def _offer_own(host: Host, own: OwnCalls, timers: Timers) -> None:
    host.syscall(StateGet, own.get)
    host.syscall(StateSet, own.set)
    host.syscall(StateDelete, own.delete)
    host.syscall(StateList, own.list)
    host.syscall(SecretGet, own.secret)
    host.syscall(TimerSet, timers.set)
    host.syscall(TimerClear, timers.clear)
