"""`operant` alone: a system in this process and, where there is a terminal, a chat with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from operant.app.connect import Link


def start() -> int:
    """Start, and return the exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from operant.cli.serve import serve

        return serve()
    from operant.cli.here import with_link

    return with_link(_chat, serving=True)


async def _chat(link: Link) -> int:
    from operant import __version__
    from operant.cli.chat.command import talk
    from operant.cli.here import home
    from operant.cli.model import explain
    from operant.cli.serve import page_line

    where = f"at {home().path}" if link.hosting else "in the daemon that runs already"
    lines = (f"Operant {__version__} {where}", await explain(link), await page_line(link))
    return await talk(link, greeting="\n".join(line for line in lines if line))
