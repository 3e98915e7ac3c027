"""How commands reach the system: the daemon through its socket, else one in this process, with the same outcome."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from operant.app.home import Home
    from operant.kernel.syscalls import Syscall
    from operant.sdk.client import Client

R = TypeVar("R")


def home() -> Home:
    """Return the home that holds for this command."""
    from operant.app.home import Home

    return Home.find(os.environ)


def call(request: Syscall[R]) -> R:
    """Make a syscall: through the socket without an event loop when a daemon runs, else in this process."""
    from operant.app.connect import outcome

    return outcome(home(), request)


def with_client(work: Callable[[Client], Awaitable[R]]) -> R:
    """Do several things with one connection."""
    import asyncio

    from operant.app.connect import connect

    async def connected() -> R:
        client = await connect(home())
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(connected())
