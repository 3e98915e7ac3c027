"""One life of a system: start, recover, send the messages that were not sent, wait until all are answered, leave.

    python -m tests.crash.child HOME MESSAGES

It is killed somewhere on the way, and started again.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from operant.app.build import Options, running
from operant.app.extensions import Found, find_extensions
from operant.app.home import Home
from operant.sdk import OWNER, Address, SessionDispatch, Text
from tests.crash.parts import extension

SESSIONS = 4


def found() -> Found:
    """Return our extensions and the one of these tests."""
    ours = find_extensions()
    return Found(extensions=(*ours.extensions, extension), unusable=ours.unusable)


async def live(home: Path, messages: int) -> None:
    """Send every message again: those that were accepted before are told apart by their ids."""
    chosen = Options(env=os.environ, overrides={}, find=found)
    async with running(Home(home), chosen) as system:
        kernel = system.kernel
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for number in range(messages):
            session = f"s{number % SESSIONS}"
            where = Address(channel="file", chat=session)
            await kernel.call(
                OWNER,
                SessionDispatch(
                    session=session, parts=(Text(text=f"@work m{number}"),), address=where, external_id=f"m{number}"
                ),
            )
        while True:
            busy = await kernel.store.unfinished() or await kernel.store.outbox()
            if not busy and not kernel.sessions.working:
                break
            await asyncio.sleep(0.005)


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2])))
