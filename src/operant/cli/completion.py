"""`operant completion`."""

from __future__ import annotations

import os
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

from operant.cli.commands import operant

_HOW = {
    "bash": 'eval "$(operant completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(operant completion zsh)"    # in ~/.zshrc',
    "fish": "operant completion fish | source    # in ~/.config/fish/config.fish",
}


@click.command(help="Print the completion script of a shell.\n\n" + "\n\n".join(_HOW.values()))
@click.argument("shell", type=click.Choice(list(_HOW)), required=False)
def command(shell: str | None) -> None:
    """Print the script, for the shell in use when none is named."""
    name = shell or PurePath(os.environ.get("SHELL", "bash")).name
    kind = get_completion_class(name)
    if kind is None:
        raise click.UsageError(f"There is no completion for {name!r}; there is for {', '.join(_HOW)}.")
    click.echo(kind(operant, {}, "operant", "_OPERANT_COMPLETE").source())
