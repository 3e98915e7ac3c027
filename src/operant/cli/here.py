"""How commands reach the system: the daemon through its socket, else one in this process, with the same outcome."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from operant.app.connect import Link
    from operant.app.home import Home
    from operant.kernel.syscalls import Syscall

R = TypeVar("R")


def home() -> Home:
    """Return the home that holds for this command."""
    from operant.app.home import Home

    return Home.find(os.environ)


def call(request: Syscall[R]) -> R:
    """Make a syscall: through the socket without an event loop when a system runs, else in this process."""
    import msgspec

    from operant.app.ask import ask

    answer = ask(home().socket, request.call, msgspec.to_builtins(request))
    if answer is not None:
        return cast("R", msgspec.convert(answer["result"], type(request).returns))
    return with_link(lambda link: link.call(request), work=False)


def rest_note() -> str:
    """Say that what was put on record rests, where no system runs that goes on with it; else nothing."""
    from operant.kit.endpoint import NobodyThere, dial

    try:
        dial(home().socket, 5.0).close()
    except NobodyThere:
        return "Operant does not run: this goes on at the next start, as with `operant` or `operant serve`."
    except OSError:
        return ""
    return ""


def with_link(do: Callable[[Link], Awaitable[R]], *, work: bool = True, serving: bool = False) -> R:
    """Do something over one connection.

    With `work`, a system in this process also takes up what is unfinished; with `serving` it is a whole daemon.
    """
    import asyncio
    from dataclasses import replace

    from operant.app.build import options
    from operant.app.connect import connect

    async def connected() -> R:
        link = await connect(home(), replace(options(work=work), role="daemon" if serving else "command"))
        try:
            return await do(link)
        finally:
            await link.close()

    return asyncio.run(connected())
