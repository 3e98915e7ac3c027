"""`operant serve`: the daemon in the foreground."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from operant.cli.here import home
from operant.cli.output import say

if TYPE_CHECKING:
    from operant.sdk.client import Client


@click.command(help="Run without a chat, until stopped (Ctrl-C or SIGTERM).")
@click.option("--supervised", is_flag=True, help="Start it again when it asks for that, or crashes.")
@click.option("--host", help="Address to listen on, over gateway.host.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port of the web page and the API, over gateway.port.")
@click.option("--insecure", is_flag=True, help="Allow an address beyond this machine without TLS.")
def command(supervised: bool, host: str | None, port: int | None, insecure: bool) -> int:
    """Serve until the end; 75 asks whoever started us for another start."""
    chosen = {"HOST": host, "PORT": None if port is None else str(port), "INSECURE": "true" if insecure else None}
    given = {f"OPERANT_GATEWAY__{name}": value for name, value in chosen.items() if value is not None}
    os.environ.update(given)  # a supervised child and a restart in place find them there
    return supervise() if supervised else serve()


def supervise() -> int:
    """Keep `serve` running in a process of its own, and return the exit code."""
    from operant.app import supervise as supervision
    from operant.app.supervise import SUPERVISED

    os.environ[SUPERVISED] = "1"
    return supervision.supervise(supervision.command_line(os.environ.get("OPERANT_HOME", "")))


def serve() -> int:
    """Run a system in this process and return the exit code."""
    import asyncio

    from operant.app.build import System
    from operant.app.serve import serve as run
    from operant.kernel.records import OWNER
    from operant.sdk.local import LocalClient

    place = home()

    async def ready(system: System) -> None:
        say(f"Operant is ready on {place.path}. Ctrl-C stops it; `operant chat` talks to it.")
        line = await page_line(LocalClient(lambda: system.kernel, OWNER), secret=sys.stdout.isatty())
        if line:
            say(line)
        for problem in system.problems():
            say(f"problem: {problem}")

    return asyncio.run(run(place, ready=ready))


async def page_line(client: Client, *, secret: bool = True) -> str:
    """Say where the page is; to a person with a link that lets one browser in, to a journal without."""
    from operant.kernel.errors import NotFound, OperantError
    from operant.kernel.syscalls import LoginOpen

    try:
        link = await client.call(LoginOpen())
    except NotFound:  # the gateway is switched off
        return ""
    except OperantError as error:
        return error.line()
    if not secret:
        return f"The page: {link.partition('/#')[0]}   (`operant open` lets a browser in)"
    return f"The page: {link}   (works once; `operant open` makes another)"
