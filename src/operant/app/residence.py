"""Where extensions live: each in a task of its own, from its setup to its end, so that one that breaks breaks alone."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from typing import Any

from operant.app.extensions import Unusable, describe_fault
from operant.kernel.errors import OperantError

LEAVE_S = 5.0
"""How long an extension may take to end before it is cancelled."""

_log = logging.getLogger("operant.extensions")


class Resident:
    """One extension at work. Setup and end run in the same task, as task groups inside it need."""

    def __init__(self, name: str, context: AbstractAsyncContextManager[Any]) -> None:
        self.name = name
        self.fault = ""
        self._context = context
        self._settled = asyncio.Event()
        self._leave = asyncio.Event()
        self._gone = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def move_in(self, group: asyncio.TaskGroup) -> str:
        """Set it up and return what went wrong, or an empty text."""
        self._task = group.create_task(self._live(), name=f"extension {self.name}")
        await self._settled.wait()
        return self.fault

    async def move_out(self) -> None:
        """Let it end; one that does not is cancelled."""
        self._leave.set()
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._gone.wait()
        except TimeoutError:
            _log.warning("extension %s did not end in %g s and is cancelled", self.name, LEAVE_S)
            if self._task:
                self._task.cancel()

    async def _live(self) -> None:
        try:
            async with self._context:
                self._settled.set()
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001  # supervisor: an extension is foreign code; the others go on
            self.fault = error.line() if isinstance(error, OperantError) else describe_fault(error)
            _log.exception("extension %s failed", self.name)
        finally:
            self._settled.set()
            self._gone.set()


class Residence:
    """All extensions of a running system; they end in the reverse order in which they came."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._residents: list[Resident] = []
        self._refused: list[Unusable] = []

    async def __aenter__(self) -> Residence:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        while self._residents:
            await self._residents.pop().move_out()
        # Not told the reason, the group does not wrap it: what went wrong outside comes out as it is.
        await self._group.__aexit__(None, None, None)

    async def admit(self, name: str, context: AbstractAsyncContextManager[Any]) -> str:
        """Start an extension and return what went wrong, or an empty text."""
        resident = Resident(name, context)
        fault = await resident.move_in(self._group)
        if fault:
            self.refuse(name, fault)
        else:
            self._residents.append(resident)
        return fault

    async def evict(self, name: str, reason: str) -> None:
        """End an extension that cannot be used after all."""
        for resident in [one for one in self._residents if one.name == name]:
            self._residents.remove(resident)
            await resident.move_out()
        self.refuse(name, reason)

    def refuse(self, name: str, reason: str) -> None:
        """Note that an extension cannot be used."""
        self._refused.append(Unusable(name=name, reason=reason))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the extensions that are at work."""
        return tuple(sorted(one.name for one in self._residents if not one.fault))

    @property
    def unusable(self) -> tuple[Unusable, ...]:
        """Return those that are not, with the reason; what broke while it ran is among them."""
        broken = [Unusable(name=one.name, reason=one.fault) for one in self._residents if one.fault]
        return (*self._refused, *broken)
