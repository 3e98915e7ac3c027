"""Many WebSocket clients in a process of their own; prints what they saw as one line of JSON.

    python -m bench.crowd URL TOKEN NAME SESSIONS WINDOWS STAGGER_MS TEXT

Each session is watched by so many windows; the first of them says the text. `deltas` are (session, text, time in
nanoseconds of the monotonic clock, which all processes of a machine share), `lost` counts gaps in the seqs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import aiohttp


class Crowd:
    """All windows."""

    def __init__(self, url: str, name: str, text: str, stagger_s: float) -> None:
        self._url = url
        self._name = name
        self._text = text
        self._stagger_s = stagger_s
        self.deltas: list[tuple[str, str, int]] = []
        self.lost = 0
        self.frames = 0

    async def window(self, http: aiohttp.ClientSession, session: int, speaks: bool, ready: asyncio.Barrier) -> None:
        """Watch one session to the end of its turn."""
        async with http.ws_connect(f"{self._url}/ws/{self._name}{session}?view=events&after=0") as socket:
            await ready.wait()
            if speaks:
                await asyncio.sleep(session * self._stagger_s)
                await socket.send_str(json.dumps({"type": "message", "content": self._text}))
            last = 0
            async for message in socket:
                now = time.monotonic_ns()
                frame: Any = json.loads(message.data)
                self.frames += 1
                if frame["type"] == "text_delta":
                    self.deltas.append((f"{self._name}{session}", frame["text"], now))
                if frame["type"] == "event":
                    self.lost += frame["seq"] != last + 1
                    last = frame["seq"]
                    if frame["event"]["type"] == "turn.ended":
                        return


async def main() -> None:
    """Watch, and say what was seen."""
    url, token, name, sessions, windows, stagger, text = sys.argv[1:]
    crowd = Crowd(url, name, text, float(stagger) / 1000)
    count = int(sessions) * int(windows)
    ready = asyncio.Barrier(count)
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers, connector=connector) as http, asyncio.TaskGroup() as group:
        for session in range(int(sessions)):
            for window in range(int(windows)):
                group.create_task(crowd.window(http, session, window == 0, ready))
    print(json.dumps({"deltas": crowd.deltas, "lost": crowd.lost, "frames": crowd.frames}))


if __name__ == "__main__":
    asyncio.run(main())
