"""Timers of services: kept in the store, so that none is forgotten over a restart."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated

import msgspec
from msgspec import Meta

from operant.ext.services.clerk import OWN, own_service
from operant.ext.services.roster import Roster
from operant.ext.services.wire import TimerDue
from operant.sdk import Host, Invalid, NotFound, OperantError, Principal, PutValue, Record, Syscall

_SPACE = "service-timers"
_AGAIN_S = 5.0
_AT_ONCE = 64
"""Services that are told side by side; the others wait for at most `_AGAIN_S` each time."""
MOST = 100
LONGEST_S = 10 * 366 * 86_400.0
"""Ten years."""

_log = logging.getLogger("operant.services")


class Timer(Record):
    """One timer; `due` is in microseconds since 1970, `every_s` is 0 for one that is told once."""

    service: str
    name: str
    due: int
    every_s: float = 0.0
    data: str = ""


class TimerSet(Syscall[None]):
    """Be told `timer` in `after_s` seconds, and then every `every_s` (0: once); a name that is taken is replaced."""

    call = "service.timer.set"
    capability = OWN
    name: str
    after_s: Annotated[float, Meta(ge=0, le=LONGEST_S)] = 0.0
    every_s: Annotated[float, Meta(ge=0, le=LONGEST_S)] = 0.0
    data: str = ""


class TimerClear(Syscall[None]):
    """Forget a timer."""

    call = "service.timer.clear"
    capability = OWN
    name: str


class Timers:
    """Tell services when it is time; what is not answered is told again."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self._host = host
        self._roster = roster
        self._timers: dict[tuple[str, str], Timer] = {}
        self._changed = asyncio.Event()
        self._telling: set[str] = set()
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def load(self) -> None:
        """Read those of an earlier run."""
        for _, value in await self._host.kept.values(_SPACE):
            timer = msgspec.json.decode(value, type=Timer)
            self._timers[timer.service, timer.name] = timer

    async def set(self, who: Principal, call: TimerSet) -> None:
        """Set a timer."""
        service = own_service(who)
        if call.every_s and call.every_s < 1:
            raise Invalid("A timer repeats once a second at most.")
        if sum(one == service for one, name in self._timers if name != call.name) >= MOST:
            raise Invalid(f"A service has {MOST} timers at most.", "Clear one first.")
        due = self._host.clock.now() + int((call.after_s or call.every_s) * 1e6)
        await self._put(Timer(service=service, name=call.name, due=due, every_s=call.every_s, data=call.data))

    async def clear(self, who: Principal, call: TimerClear) -> None:
        """Forget a timer."""
        timer = self._timers.get((own_service(who), call.name))
        if timer is None:
            raise NotFound(f"There is no timer {call.name!r}.")
        await self._drop(timer)

    async def run(self) -> None:
        """Tell, for ever: services side by side, the timers of one in order."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                now = self._host.clock.now()
                for service in {one.service for one in self._timers.values() if one.due <= now} - self._telling:
                    self._telling.add(service)
                    group.create_task(self._tell_all(service, now))
                await self._until_due()

    async def _until_due(self) -> None:
        """Wait until a timer is due of a service that is not being told already, or something has changed."""
        waiting = [one.due for one in self._timers.values() if one.service not in self._telling]
        wait_s = max(0.0, (min(waiting) - self._host.clock.now()) / 1e6) if waiting else None
        try:
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _tell_all(self, service: str, now: int) -> None:
        """Tell a service the timers that are due by now, the earliest first."""
        due = [one for one in self._timers.values() if one.service == service and one.due <= now]
        try:
            for timer in sorted(due, key=lambda one: one.due):
                async with self._room:
                    await self._ring(timer)
        finally:
            self._telling.discard(service)
            self._changed.set()

    def _holds(self, timer: Timer) -> bool:
        """Tell whether a timer is still the one of its name: its service may have cleared it, or set it anew."""
        return self._timers.get((timer.service, timer.name)) == timer

    async def _ring(self, timer: Timer) -> None:
        if not self._holds(timer):
            return
        try:
            await self._tell(timer)
        except (OperantError, TimeoutError) as error:
            _log.info("the timer %s of %s is told again: %s", timer.name, timer.service, error)
            if self._holds(timer):
                later = self._host.clock.now() + int(_AGAIN_S * 1e6)
                self._timers[timer.service, timer.name] = msgspec.structs.replace(timer, due=later)

    async def _tell(self, timer: Timer) -> None:
        try:
            keeper = self._roster.post(timer.service).keeper
        except NotFound:  # its skill has gone
            await self._drop(timer)
            return
        due = TimerDue(name=timer.name, data=timer.data, due=timer.due)
        async with asyncio.timeout(_AGAIN_S):
            generation = await keeper.serving("")
            await generation.ask("timer", due, object)
        if self._holds(timer):
            await self._next(timer)

    async def _next(self, timer: Timer) -> None:
        if not timer.every_s:
            await self._drop(timer)
            return
        step = int(timer.every_s * 1e6)
        missed = max(0, self._host.clock.now() - timer.due) // step
        await self._put(msgspec.structs.replace(timer, due=timer.due + (missed + 1) * step))

    async def _put(self, timer: Timer) -> None:
        key = f"{timer.service}:{timer.name}"
        await self._host.kept.write(PutValue(namespace=_SPACE, key=key, value=msgspec.json.encode(timer)))
        self._timers[timer.service, timer.name] = timer
        self._changed.set()

    async def _drop(self, timer: Timer) -> None:
        await self._host.kept.write(PutValue(namespace=_SPACE, key=f"{timer.service}:{timer.name}", value=None))
        self._timers.pop((timer.service, timer.name), None)
