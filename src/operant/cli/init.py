"""`operant init`."""

from __future__ import annotations

import click

from operant.cli.here import home
from operant.cli.output import dim, json_option, print_json, say


@click.command(help="Make the home; nothing that is there is overwritten.")
@json_option
def command(as_json: bool) -> None:
    """Make what is missing."""
    place = home()
    made = place.init()
    if as_json:
        print_json({"home": str(place.path), "made": [str(path) for path in made]})
        return
    for path in made:
        say(dim(f"made {path}"))
    say(f"The home is {place.path}." if made else f"The home {place.path} was there already; nothing was changed.")
    say(dim("`operant` starts it, `operant doctor` checks it."))
