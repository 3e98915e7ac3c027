"""`operant logs`: the log for people."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import click

from operant.cli import figures
from operant.cli.here import home
from operant.cli.inert import inert
from operant.cli.output import coloured, dim, say
from operant.kernel.errors import NotFound
from operant.kit.clock import pause

_LOOK_S = 0.25
_COLOURS = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


@click.command(help="Show the end of the log; --json shows it as it is written.")
@click.option("-f", "--follow", is_flag=True, help="Go on showing what is added.")
@click.option("-n", "--lines", default=50, show_default=True, type=click.IntRange(0), help="How many lines.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's own JSON lines.")
def command(follow: bool, lines: int, as_json: bool) -> None:
    """Print the log."""
    path = home().log
    if not path.exists():
        raise NotFound(f"There is no log at {path} yet.", "`operant` starts and writes one.")
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in deque(file, maxlen=lines):
            _say(line, as_json)
        for line in _added(path, file) if follow else ():
            _say(line, as_json)


def _added(path: Path, file: TextIO) -> Iterator[str]:
    """Yield lines as they are written, also those of the file that takes over when the log is turned."""
    rest = ""
    while True:
        line = file.readline()
        if line:
            rest += line
            if rest.endswith("\n"):
                yield rest
                rest = ""
            continue
        pause(_LOOK_S)  # another process writes; nobody tells us when
        if _turned(path, file):
            file.close()
            file = path.open(encoding="utf-8", errors="replace")


def _turned(path: Path, file: TextIO) -> bool:
    import os

    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return there.st_ino != os.fstat(file.fileno()).st_ino or there.st_size < file.tell()


def _say(line: str, as_json: bool) -> None:
    if as_json:
        say(line.rstrip("\n"))
        return
    try:
        data = json.loads(line)
    except ValueError:
        data = None
    say(_readable(cast("dict[str, Any]", data)) if isinstance(data, dict) else inert(line.rstrip("\n")))


def _readable(data: dict[str, Any]) -> str:
    """Say an entry in one line, and its traceback below it."""
    level = str(data.get("level", "")).upper()
    at = data.get("at")
    when = figures.moment(at) if isinstance(at, int) else ""
    words = inert(str(data.get("message", "")))
    trace = inert(str(data.get("traceback", ""))).rstrip()
    shown = coloured(f"{level:<7}", _COLOURS[level]) if level in _COLOURS else f"{level:<7}"
    line = f"{dim(when)} {shown} {dim(inert(str(data.get('part', ''))))} {words}"
    return f"{line}\n{trace}" if trace else line
