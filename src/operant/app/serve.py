"""Run a system until somebody ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

from operant.app.build import Options, System, options
from operant.app.daemon import hosted
from operant.app.home import Home, Occupied
from operant.kit.clock import SystemClock

DONE = 0
RESTART = 75
"""Exit code that asks a supervisor to start the system again."""

PATIENCE_S = 10.0
"""How long to wait for a command that runs a system of its own."""
_LOOK_S = 0.05

_log = logging.getLogger("operant.daemon")


async def serve(
    home: Home, chosen: Options | None = None, ready: Callable[[System], Awaitable[None]] | None = None
) -> int:
    """Run a system until somebody ends it, and return the exit code.

    That is SIGTERM, SIGINT or the syscall `kernel.shutdown`; SIGHUP and `kernel.restart` ask for another start.
    `ready` is called once it accepts. Raises what `running` raises.
    """
    as_daemon = replace(chosen or options(), role="daemon")
    async with AsyncExitStack() as stack:
        system = await _enter(stack, home, as_daemon)
        ended = await stack.enter_async_context(_Ended())
        _notify("READY=1")
        _log.info("ready: process %d, %s", os.getpid(), home.path)
        if ready:
            await ready(system)
        await ended.wait(system.kernel.stopping)
        again = ended.again or system.renewal.wanted
        _notify("STOPPING=1")
        _log.info("stopping: %s", ended.reason)
    return RESTART if again else DONE


async def _enter(stack: AsyncExitStack, home: Home, chosen: Options) -> System:
    """Start as soon as a command lets go of the home that holds it for a moment."""
    clock = chosen.clock or SystemClock()
    until = clock.monotonic() + PATIENCE_S
    while True:
        try:
            return await stack.enter_async_context(hosted(home, chosen))
        except Occupied as occupied:
            holder = occupied.holder
            if holder is None or (holder.pid and holder.role == "daemon") or clock.monotonic() > until:
                raise
        await clock.sleep(_LOOK_S)


class _Ended:
    """Why a system is to end."""

    def __init__(self) -> None:
        self.reason = ""
        self.again = False
        self._signalled = asyncio.Event()
        self._numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]

    async def __aenter__(self) -> _Ended:
        loop = asyncio.get_running_loop()
        for number in self._numbers:
            with suppress(NotImplementedError):  # Windows: KeyboardInterrupt ends it
                loop.add_signal_handler(number, self._take, number)
        return self

    async def __aexit__(self, *reason: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self._numbers:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)

    async def wait(self, asked: asyncio.Event) -> None:
        """Wait for a signal or the syscall."""
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(event.wait()) for event in (self._signalled, asked)]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()
        self.reason = self.reason or "a call asked for it"

    def _take(self, number: int) -> None:
        self.reason = f"signal {signal.Signals(number).name}"
        self.again = self.again or signal.Signals(number).name == "SIGHUP"
        self._signalled.set()


def _notify(word: str) -> None:
    """Tell systemd, where it asked to be told."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
        notifier.sendto(word.encode(), "\0" + address[1:] if address.startswith("@") else address)
