"""`operant doctor`: look at everything, say what is wrong and what to do."""

from __future__ import annotations

import click

from operant.cli.here import home
from operant.cli.inert import one_line
from operant.cli.output import coloured, dim, json_option, print_json, say
from operant.kernel.errors import OperantError
from operant.kernel.syscalls import Check

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}
_WIDTH = 300


@click.command(help="Check everything, and say what to do; 1 when something must be mended.")
@click.option("--full", is_flag=True, help="Read every event and every blob of the store; takes longer.")
@click.option("--repair", "mend", is_flag=True, help="Save what can be read of the store; the old file is kept.")
@json_option
def command(full: bool, mend: bool, as_json: bool) -> int:
    """Print every check."""
    checks = [*([_repair()] if mend else []), *_examine(full)]
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


def _examine(full: bool) -> list[Check]:
    """Look at what lies on the disk here, and ask the system that runs, or one that is started for this."""
    import asyncio
    import os

    from operant.app.build import options
    from operant.app.connect import connect
    from operant.app.examination import examine, look

    async def asked() -> list[Check]:
        link = await connect(home(), options(work=False))
        try:
            return await look(link, full=full, hosting=link.hosting)
        finally:
            await link.close()

    return asyncio.run(examine(home(), os.environ, asked))


def _repair() -> Check:
    """Save what can be read of the store into a new one; the old file is kept."""
    from operant.app.mend import mend_store
    from operant.kit.clock import SystemClock

    try:
        return Check(name="repair", state="ok", text=mend_store(home(), SystemClock()))
    except OperantError as error:
        return Check(name="repair", state="fail", text=error.sentence, hint=error.hint)
