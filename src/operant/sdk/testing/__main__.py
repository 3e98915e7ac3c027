"""Run the scripted model server: `python -m operant.sdk.testing [--port N] [--scripts JSON | --file FILE] [--log]`.

It prints one line of JSON with its port, and ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from operant.sdk.testing.server import ScriptedServer


async def serve(port: int, scripts: str, keep_log: bool) -> None:
    """Serve until nobody holds the other end of standard input."""
    server = ScriptedServer(msgspec.json.decode(scripts), keep_log=keep_log)
    async with server.serving(port) as taken:
        sys.stdout.write(f'{{"port": {taken}}}\n')
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(prog="python -m operant.sdk.testing")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--scripts", default="{}")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--log", action="store_true")
    chosen = parser.parse_args()
    scripts = chosen.file.read_text() if chosen.file else chosen.scripts
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(chosen.port, scripts, chosen.log))
    else:
        uvloop.run(serve(chosen.port, scripts, chosen.log))


if __name__ == "__main__":
    main()
