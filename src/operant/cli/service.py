"""`operant service …`: keep Operant running with what the system has for that."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from operant.cli.here import home
from operant.cli.output import dim, json_option, print_json, say, say_text

if TYPE_CHECKING:
    from operant.app.service.manager import Condition, Manager

R = TypeVar("R")


@click.group(help="Keep Operant running: as a service of systemd (Linux) or launchd (macOS) for this home.")
def command() -> None:
    """Hold the commands about the service."""


@command.command("install", help="Write the service and enable it from the next login on; an old one is renewed.")
@click.option("--print", "only_print", is_flag=True, help="Print what would be written, and do nothing.")
def install(only_print: bool) -> None:
    """Make the service known to the system."""
    if only_print:
        sys.stdout.write(_with(lambda manager: manager.text()))
        return
    changed = _with(lambda manager: manager.install())
    path = _manager().path
    say_text(f"Wrote {path}." if changed else f"{path} was there already, and is enabled.")
    say(dim("`operant service start` starts it now, `operant service restart` lets a change count."))
    if sys.platform == "linux":
        say(dim("It runs while you are logged in; `loginctl enable-linger` lets it run always."))


@command.command("uninstall", help="Stop the service and remove it; the home stays as it is.")
def uninstall() -> None:
    """Let the system forget the service."""
    path = _manager().path
    gone = _with(lambda manager: manager.uninstall())
    say_text(f"Removed {path}." if gone else "Operant was not installed as a service; nothing was changed.")


@command.command("start", help="Start the service.")
def start() -> None:
    """Start, and say so."""
    _with(lambda manager: manager.start())
    say("The service runs. `operant chat` talks to it.")


@command.command("stop", help="Stop the service; it starts again at the next login.")
def stop() -> None:
    """Stop, and say so."""
    _with(lambda manager: manager.stop())
    say("The service is stopped.")


@command.command("restart", help="Stop and start the service.")
def restart() -> None:
    """Restart, and say so."""
    _with(lambda manager: manager.restart())
    say("The service runs anew.")


@command.command("status", help="Say how the service stands; 1 when it does not run.")
@json_option
def status(as_json: bool) -> int:
    """Print how it stands."""
    found = _with(lambda manager: manager.condition())
    print_json(found) if as_json else _say(found)
    return 0 if found.running else 1


def _say(found: Condition) -> None:
    if not found.installed:
        say("Operant is not installed as a service. `operant service install` does that.")
        return
    process = f", process {found.pid}" if found.pid else ""
    times = f", started again {found.restarts} times" if found.restarts else ""
    say_text(f"{found.name} is {found.state}{process}{times}.")
    say_text(f"{'Starts' if found.enabled else 'Does not start'} at login: {found.path}")


def _manager() -> Manager:
    """Return who keeps services here, for the home that holds for this command."""
    from operant.app.home import Home
    from operant.app.service.manager import manager_of
    from operant.app.service.unit import Daemon

    default = Home.find({name: value for name, value in os.environ.items() if name != "OPERANT_HOME"})
    return manager_of(Daemon.of(home().path, default.path), os.environ)


def _with(do: Callable[[Manager], Awaitable[R]]) -> R:
    import asyncio

    async def done() -> R:
        return await do(_manager())

    return asyncio.run(done())
