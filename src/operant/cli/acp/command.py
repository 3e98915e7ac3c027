"""Start to serve an editor: take standard input and output for the protocol, and find the system."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from operant.cli.here import home, with_link
from operant.kernel.errors import Invalid, Missing, OperantError
from operant.sdk.client import Client

if TYPE_CHECKING:
    from operant.cli.acp.serve import Streams

_LONGEST = 50 * 2**20
"""Bytes of a message: pictures travel inside them."""


@click.command(help="Serve an editor that speaks the Agent Client Protocol (Zed, JetBrains); the editor starts this.")
@click.option("--agent", default="", help="Who answers in new sessions (default: the default agent).")
def command(agent: str) -> int:
    """Serve until the editor closes its end."""
    if sys.stdin.isatty():
        raise click.UsageError("An editor starts this command and talks to it; docs/howto/editors.md says how.")
    try:
        from operant.cli.acp.serve import serve
    except ImportError as error:
        raise Missing(
            "Editors are served by the package agent-client-protocol, which is not installed.",
            "Install it: pip install 'operant[acp]'.",
        ) from error

    make, shared = take_streams(), _shared()

    async def served(client: Client) -> None:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(serve(client, agent, shared, make))
            with suppress(NotImplementedError):  # Windows ends the process
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)

    with_link(served)
    return 0


def _shared() -> str:
    """Return the directory that all workspaces see as `shared`, empty where the settings name none."""
    from operant.app.config import load_config
    from operant.app.neighbours import find_all

    place = home().path
    with suppress(OperantError):  # the system says what is wrong with the settings
        config = load_config(place, os.environ, find_all(place).extensions)
        return str(getattr(config.sections.get("tools"), "shared", ""))
    return ""


def take_streams() -> Callable[[], Streams]:
    """Keep standard input and output for the protocol: what anybody else prints goes to standard error.

    Programs that are started from here get no input and the same output.
    """
    if sys.platform == "win32":
        return _standard
    reading, writing = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is what is wanted
        os.dup2(nothing.fileno(), 0)
    sys.stdout.flush()
    os.dup2(2, 1)
    return lambda: _piped(reading, writing)


async def _piped(reading: int, writing: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if not all(_is_pipe(one) for one in (reading, writing)):
        raise Invalid("Standard input and output are no pipes.", "An editor starts this command.")
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(writing, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _standard() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Leave it to the SDK, which reads in a thread there; this part is untried."""
    from acp.stdio import stdio_streams

    return await stdio_streams(_LONGEST)
