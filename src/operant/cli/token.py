"""`operant token …`: who may connect."""

from __future__ import annotations

import click

from operant.cli import figures
from operant.cli.here import call
from operant.cli.output import dim, json_option, print_json, print_table, say
from operant.kernel.syscalls import TokenAdd, TokenList, TokenRevoke

_SCOPES = ("read", "chat", "approve", "tools", "a2a", "admin")


@click.group(help="Make, list and revoke the tokens with which programs and browsers come in.")
def command() -> None:
    """Hold the commands about tokens."""


@command.command("add", help="Make a token; it is shown this once.")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("chat",),
    metavar="SCOPE",
    help=f"{', '.join(_SCOPES)}, or a2a:AGENT; may be repeated.",
    show_default=True,
)
@click.option("--days", default=0, type=click.IntRange(0), help="Days until it is void (0: never).")
@json_option
def add(name: str, scopes: tuple[str, ...], days: int, as_json: bool) -> None:
    """Make a token."""
    made = call(TokenAdd(name=name, scopes=scopes, days=days))
    if as_json:
        print_json(made)
        return
    say(made.token)
    say(dim(f"{name} may {', '.join(scopes)}. This is the only time that the token is shown."))


@command.command("list", help="List tokens and browsers; never the tokens themselves.")
@json_option
def list_tokens(as_json: bool) -> None:
    """Print tokens."""
    tokens = call(TokenList())
    if as_json:
        print_json(tokens)
        return
    rows = [(one.name, one.kind, ", ".join(one.scopes), _moment(one.expires), _moment(one.used)) for one in tokens]
    print_table(("name", "kind", "may", "until", "last used"), rows, "There are no tokens but your own.")


@command.command("revoke", help="Make a token void at once.")
@click.argument("name")
@json_option
def revoke(name: str, as_json: bool) -> None:
    """Revoke a token."""
    info = call(TokenRevoke(name=name))
    print_json(info) if as_json else say(f"{info.name} is void.")


def _moment(at: int) -> str:
    return figures.moment(at) if at else "never"
