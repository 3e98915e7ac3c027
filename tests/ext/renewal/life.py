"""One life of a daemon: serve, ask once, and stop when nothing is to be done, or when a restart is asked for.

    python -m tests.ext.renewal.life HOME WORDS

`OPERANT_FAULT` kills it somewhere on the way.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from operant.app.build import Options, System
from operant.app.home import Home
from operant.app.serve import serve
from operant.sdk import OWNER, SessionDispatch, Text


def live(home: Path, words: str) -> int:
    """Return the exit code: 0 when all is done, 75 when another life is wanted."""

    async def ready(system: System) -> None:
        kernel = system.kernel
        await kernel.call(OWNER, SessionDispatch(session="s", parts=(Text(text=words),), external_id="m1"))
        quiet = 0
        while quiet < 5 and not kernel.stopping.is_set():
            busy = await kernel.store.unfinished() or kernel.sessions.working
            quiet = 0 if busy else quiet + 1
            await asyncio.sleep(0.02)
        kernel.stopping.set()

    return asyncio.run(serve(Home(home), Options(env=os.environ, overrides={}), ready))


if __name__ == "__main__":
    sys.exit(live(Path(sys.argv[1]), sys.argv[2]))
