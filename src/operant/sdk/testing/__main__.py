"""Run the scripted model server: `python -m operant.sdk.testing [--port N] [--script FILE | --scripts JSON] [--log]`.

It prints one line of JSON with its port, and ends when its standard input does, or at SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from operant.sdk.testing.server import ScriptedServer


async def serve(port: int, scripts: bytes, keep_log: bool) -> None:
    """Serve until nobody holds the other end of standard input, or a signal says so."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows: the signal ends the process by itself
            loop.add_signal_handler(number, over.set)
    server = ScriptedServer(msgspec.json.decode(scripts), keep_log=keep_log)
    async with server.serving(port) as taken:
        sys.stdout.write(f'{{"port": {taken}}}\n')
        sys.stdout.flush()
        # A daemon thread and a bare descriptor: nothing that ends this process may wait for standard input.
        threading.Thread(target=_watch, args=(loop, over), daemon=True).start()
        await over.wait()


def _watch(loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
    with suppress(OSError):  # closed from the start
        while os.read(0, 65_536):
            pass
    with suppress(RuntimeError):  # the loop has ended before
        loop.call_soon_threadsafe(over.set)


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(prog="python -m operant.sdk.testing")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--scripts", default="{}")
    parser.add_argument("--script", "--file", type=Path)
    parser.add_argument("--log", action="store_true")
    chosen = parser.parse_args()
    scripts = chosen.script.read_bytes() if chosen.script else chosen.scripts.encode()
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(chosen.port, scripts, chosen.log))
    else:
        uvloop.run(serve(chosen.port, scripts, chosen.log))


if __name__ == "__main__":
    main()
