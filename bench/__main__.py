"""`python -m bench [--full] [FIGURE …]`: measure, and print one table."""

from __future__ import annotations

import sys

from bench import gateway, others, services, turns

TURNS = ("turn", "rates", "steps", "history", "token", "memory")
GATEWAY = ("http", "first", "crowd", "start", "flood")
OTHERS = ("appends", "session", "commands", "tokens", "kills")


def main(arguments: list[str]) -> int:
    """Measure what is named, or everything."""
    full = "--full" in arguments
    names = {name for name in arguments if not name.startswith("-")}
    everything = (*TURNS, *GATEWAY, *OTHERS, *services.NAMES)
    unknown = names - set(everything)
    if unknown:
        print(f"no such figure: {', '.join(sorted(unknown))}; there are: {', '.join(everything)}", file=sys.stderr)
        return 2
    names = names or set(everything)
    rows = [*turns.measure(names, full=full), *gateway.measure(names), *others.measure(names, full=full)]
    rows += services.measure(names, full=full)
    print("| figure | goal | measured | beside |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.figure} | {row.goal} | {row.ours} | {row.beside} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
