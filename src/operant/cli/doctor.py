"""`operant doctor`: look at everything, say what is wrong and what to do."""

from __future__ import annotations

import click

from operant.cli.examination import Check, examine, repair
from operant.cli.here import home
from operant.cli.inert import one_line
from operant.cli.output import coloured, dim, json_option, print_json, say

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}
_WIDTH = 300


@click.command(help="Check everything, and say what to do; 1 when something must be mended.")
@click.option("--full", is_flag=True, help="Read every event and every blob of the store; takes longer.")
@click.option("--repair", "mend", is_flag=True, help="Save what can be read of the store; the old file is kept.")
@json_option
def command(full: bool, mend: bool, as_json: bool) -> int:
    """Print every check."""
    mended = [repair(home())] if mend else []
    checks = [*mended, *examine(home(), full=full)]
    failed = any(check.state == "fail" for check in checks)
    if as_json:
        print_json({"ok": not failed, "checks": checks})
    else:
        for check in checks:
            _say(check)
    return 1 if failed else 0


def _say(check: Check) -> None:
    mark, colour = _MARKS[check.state]
    say(f"{coloured(mark, colour)} {check.name:<9} {one_line(check.text, _WIDTH)}")
    if check.hint:
        say(dim(f"            {one_line(check.hint, _WIDTH)}"))
