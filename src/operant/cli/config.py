"""`operant config …`: the settings."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from operant.cli.here import home
from operant.cli.inert import inert
from operant.cli.output import dim, json_option, print_json, say, say_text, strong, whole
from operant.kernel.errors import Invalid
from operant.kit.secret import Secret

if TYPE_CHECKING:
    from operant.app.config import Config


@click.group(help="Show, check and explain the settings.")
def command() -> None:
    """Hold the commands about settings."""


@command.command("path", help="Print where the settings are.")
@json_option
def path(as_json: bool) -> None:
    """Print the file's path."""
    place = home().config
    print_json({"path": str(place), "exists": place.exists()}) if as_json else say(str(place))


@command.command("show", help="Show the settings in force, secrets as ***.")
@json_option
def show(as_json: bool) -> None:
    """Print what file and environment come to."""
    config = _loaded()
    shown = {"defaults": config.defaults, "agents": config.agents, "extensions": config.extensions, **config.sections}
    data = msgspec.to_builtins(whole(shown), enc_hook=_hidden)
    if as_json:
        print_json(data)
        return
    for line in _lines(data, 0):
        say_text(line)


@command.command("check", help="Say everything that is wrong with the settings.")
@json_option
def check(as_json: bool) -> int:
    """Print one line for each thing that is wrong; 1 when there is any."""
    problems = wrong()
    if as_json:
        print_json({"ok": not problems, "problems": problems})
    for line in () if as_json else problems:
        sys.stderr.write(inert(line) + "\n")
    if not problems and not as_json:
        say(f"{home().config} is fine.")
    return 1 if problems else 0


@command.command("keys", help="Explain every key.")
@click.argument("words", default="")
@json_option
def keys(words: str, as_json: bool) -> None:
    """Print the table of keys, or those that have some words in them."""
    from operant.app.config import describe
    from operant.app.neighbours import find_all

    rows = [row for row in describe(find_all(home().path).extensions) if words in row.key]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        say(f"{strong(row.key)}  {dim(f'{row.type}, default {row.default}')}")
        say(f"    {row.sentence}")


def wrong() -> list[str]:
    """Return what is wrong with the settings, one line each."""
    try:
        _loaded()
    except Invalid as error:
        return error.line().splitlines()
    return []


def _loaded() -> Config:
    from operant.app.config import load_config
    from operant.app.neighbours import find_all

    return load_config(home().path, os.environ, find_all(home().path).extensions)


def _hidden(value: object) -> object:
    return "***" if isinstance(value, Secret) else str(value)


def _lines(data: Any, depth: int) -> list[str]:
    lines: list[str] = []
    for key, value in cast("dict[str, Any]", data).items():
        if isinstance(value, dict) and value:
            lines += ["  " * depth + f"{key}:", *_lines(value, depth + 1)]
        else:
            lines.append("  " * depth + f"{key}: {_word(value)}")
    return lines


def _word(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
