"""`operant open`: the web page, logged in."""

from __future__ import annotations

import click

from operant.cli.here import call, home
from operant.cli.output import dim, json_option, print_json, say
from operant.kernel.errors import Unavailable
from operant.kernel.syscalls import LoginOpen
from operant.kit.show import show


@click.command(help="Open the web page, logged in by a link that works once.")
@click.option("--print", "only_print", is_flag=True, help="Print the link and open nothing.")
@json_option
def command(only_print: bool, as_json: bool) -> None:
    """Print a login link, and open it where there is a browser."""
    if home().holder() is None or not home().socket.exists():
        raise Unavailable("No daemon runs, so there is no page.", "Start one: operant serve.")
    link = call(LoginOpen())
    if as_json:
        print_json({"link": link})
        return
    say(link)
    if only_print or not show(link):
        say(dim("Open it in a browser on this machine; it works once, for ten minutes."))
