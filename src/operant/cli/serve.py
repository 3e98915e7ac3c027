"""`operant serve`: the daemon in the foreground."""

from __future__ import annotations

import click

from operant.cli.here import home
from operant.cli.output import say


@click.command(help="Run without a chat, until stopped (Ctrl-C or SIGTERM).")
def command() -> int:
    """Serve until the end; 75 asks whoever started us for another start."""
    return serve()


def serve() -> int:
    """Run a system in this process and return the exit code."""
    import asyncio

    from operant.app.build import System
    from operant.app.serve import serve as run

    place = home()

    def ready(system: System) -> None:
        say(f"Operant is ready on {place.path}. Ctrl-C stops it; `operant chat` talks to it.")
        for problem in system.problems():
            say(f"problem: {problem}")

    return asyncio.run(run(place, ready=ready))
