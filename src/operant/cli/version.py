"""`operant version`."""

from __future__ import annotations

import platform

import click

from operant import __version__
from operant.cli.output import json_option, print_json, say


@click.command(help="Show the version.")
@json_option
def command(as_json: bool) -> None:
    """Print it."""
    if as_json:
        print_json({"version": __version__, "python": platform.python_version(), "platform": platform.platform()})
    else:
        say(f"operant {__version__}")
