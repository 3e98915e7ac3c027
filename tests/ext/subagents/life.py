"""One life of a system with sub-agents: start, take up what is left, ask once, wait until nothing is to be done.

    python -m tests.ext.subagents.life HOME WORDS

`OPERANT_FAULT` kills it somewhere on the way, and it is started again.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from operant.app.build import Options, running
from operant.app.home import Home
from operant.sdk import OWNER, SessionDispatch, Text


async def live(home: Path, words: str) -> None:
    """Send the message again: when it was accepted before, it is told apart by its id."""
    async with running(Home(home), Options(env=os.environ, overrides={})) as system:
        kernel = system.kernel
        await kernel.call(OWNER, SessionDispatch(session="s", parts=(Text(text=words),), external_id="m1"))
        quiet = 0
        while quiet < 3:  # a result that is reported wakes a session that had nothing to do
            busy = await kernel.store.unfinished() or kernel.sessions.working
            quiet = 0 if busy else quiet + 1
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), sys.argv[2]))
