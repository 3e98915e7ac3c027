"""`operant doctor`: look at everything, say what is wrong and what to do."""

from __future__ import annotations

import click

from operant.cli.examination import Check, examine
from operant.cli.here import home
from operant.cli.inert import one_line
from operant.cli.output import coloured, dim, json_option, print_json, say

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}
_WIDTH = 300


@click.command(help="Check everything, and say what to do; 1 when something must be mended.")
@click.option("--repair", is_flag=True, help="Mend the store from what can still be read; the old file is kept.")
@json_option
def command(repair: bool, as_json: bool) -> int:
    """Print every check."""
    mended = _repair() if repair else []
    checks = [*mended, *examine(home())]
    failed = any(check.state == "fail" for check in checks)
    if as_json:
        print_json({"ok": not failed, "checks": checks})
    else:
        for check in checks:
            _say(check)
    return 1 if failed else 0


def _say(check: Check) -> None:
    mark, colour = _MARKS[check.state]
    say(f"{coloured(mark, colour)} {check.name:<11} {one_line(check.text, _WIDTH)}")
    if check.hint:
        say(dim(f"              {one_line(check.hint, _WIDTH)}"))


def _repair() -> list[Check]:
    from operant.cli.examination import repair

    return repair(home())
