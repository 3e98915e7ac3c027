"""Where the command begins. What needs no library is answered before one is imported."""

from __future__ import annotations

import sys


def main(words: list[str] | None = None) -> int:
    """Carry out a command line and return its exit code."""
    given = sys.argv[1:] if words is None else words
    if given in (["version"], ["--version"], ["-V"]):
        from operant import __version__

        sys.stdout.write(f"operant {__version__}\n")
        return 0
    from operant.cli.commands import carry_out

    return carry_out(given)
