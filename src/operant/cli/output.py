"""Print data: as JSON for programs, as aligned columns for people."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any, cast
from unicodedata import combining, east_asian_width

import click
import msgspec

from operant.cli.inert import inert, quoted

PROMPT = "\u203a"
"""Marks what a person says."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print data as JSON.")


def whole(value: Any) -> Any:
    """Return data for JSON with every field, also those at their default, so that its shape never changes."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {config.tag_field: config.tag} if config.tag_field else {}
        fields = {name: whole(getattr(value, name)) for name in value.__struct_fields__}
        return {**tag, **fields}
    if isinstance(value, dict):
        return {str(key): whole(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [whole(item) for item in cast("Sequence[Any]", value)]
    return value


def print_json(value: Any) -> None:
    """Print data as JSON; letters of all languages are kept, what controls a terminal is escaped."""
    sys.stdout.write(quoted(json.dumps(whole(value), ensure_ascii=False, indent=2)) + "\n")


def say(line: str = "") -> None:
    """Print a line for a person; words in it that are not ours must be harmless already."""
    click.echo(line)


def say_text(text: str) -> None:
    """Print text that is not ours."""
    click.echo(inert(text))


def dim(text: str) -> str:
    """Make text quiet."""
    return _styled(text, dim=True)


def strong(text: str) -> str:
    """Make text loud."""
    return _styled(text, bold=True)


def coloured(text: str, colour: str) -> str:
    """Give text a colour."""
    return _styled(text, fg=colour)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> None:
    """Print rows in columns, or a sentence when there are none; the last column gets what room is left."""
    if not rows:
        click.echo(empty)
        return
    clean = [[" ".join(inert(cell).split()) for cell in row] for row in rows]
    widths = [max(cells(row[index]) for row in [list(heads), *clean]) for index in range(len(heads))]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    click.echo(dim(_row(heads, widths, room)))
    for row in clean:
        click.echo(_row(row, widths, room))


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def _row(row: Sequence[str], widths: Sequence[int], room: int) -> str:
    line = "  ".join(cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
    if not room or cells(line) <= room:
        return line
    while line and cells(line) > room - 1:
        line = line[:-1]
    return line + "…"


def _styled(text: str, **style: Any) -> str:
    import os

    return text if "NO_COLOR" in os.environ else click.style(text, **style)
