"""What the measurements share: a system over the scripted server, a bare client, and rows of the table."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from operant.app.build import Options, System, running
from operant.app.extensions import Found, find_extensions
from operant.app.home import Home
from operant.kernel.records import OWNER, Event
from operant.kernel.syscalls import SessionDispatch
from operant.sdk import Text
from tests.crash.parts import extension

ROOT = Path(__file__).parents[1]
SCRIPTS = {
    "work": [
        *({"calls": [{"name": "keep", "arguments": {"name": f"{{1}}-{step}"}}]} for step in range(4)),
        {"text": "Done."},
    ],
    "slow": [{"text": "Hello.", "delay_ms": 400}],
}


@dataclass
class Row:
    """One line of the table."""

    figure: str
    goal: str
    ours: str
    beside: str = ""


def found() -> Found:
    """Return our extensions and the one with tools that do next to nothing."""
    ours = find_extensions()
    return Found(extensions=(*ours.extensions, extension), unusable=ours.unusable)


@asynccontextmanager
async def system(url: str, durability: str = "power", more: str = "") -> AsyncIterator[System]:
    """Run everything on a fresh home beside the checkout, so that the disk is a real one."""
    home = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT))
    config = f"defaults: {{models: [scripted/one]}}\nstore: {{durability: {durability}}}\n"
    config += f"providers: {{scripted: {{base_url: '{url}', window: {{one: 60000}}}}}}\n{more}"
    (home / "operant.yaml").write_text(config)
    try:
        async with running(Home(home), Options(env=dict(os.environ), overrides={}, find=found)) as made:
            yield made
    finally:
        shutil.rmtree(home)


class Turns:
    """Make turns and wait for their ends."""

    def __init__(self, made: System) -> None:
        self._kernel = made.kernel
        self._ends: dict[str, asyncio.Event] = {}
        self._kernel.log.watchers.append(self._seen)

    def _seen(self, event: Event) -> None:
        if event.type == "turn.ended" and event.session in self._ends:
            self._ends[event.session].set()

    async def one(self, session: str, text: str = "hello") -> float:
        """Return how long a turn took, in milliseconds, from dispatch to its end on disk."""
        end = self._ends[session] = asyncio.Event()
        began = time.perf_counter()
        await self._kernel.call(OWNER, SessionDispatch(session=session, parts=(Text(text=text),)))
        await end.wait()
        return (time.perf_counter() - began) * 1000


class Bare:
    """A loop without anything: one kept connection, one request, read to the end of the stream."""

    def __init__(self, url: str, text: str = "hello", system_prompt: str = "x" * 4000) -> None:
        self._port = int(url.split(":")[2].split("/", maxsplit=1)[0])
        messages = [{"role": "system", "content": system_prompt}, {"role": "user", "content": text}]
        options = {"include_usage": True}
        self.body = msgspec.json.encode(
            {"model": "one", "messages": messages, "stream": True, "stream_options": options}
        )

    async def open(self) -> Bare:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def one(self) -> float:
        """Return how long a call took, in milliseconds."""
        began = time.perf_counter()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(self.body)
        self._writer.write(head + self.body)
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            got += await self._reader.read(65_536)
        return (time.perf_counter() - began) * 1000

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


def middle(values: list[float]) -> str:
    """Return the median and the 99th percentile."""
    ordered = sorted(values)
    return f"{statistics.median(ordered):.2f} ms, p99 {ordered[int(len(ordered) * 0.99)]:.2f}"


async def rate(count: int, loops: int, one: Callable[[int], Awaitable[object]]) -> float:
    """Return how many a second `loops` loops make side by side, `count` in all."""

    async def loop(number: int) -> None:
        for _ in range(count // loops):
            await one(number)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(loops):
            group.create_task(loop(number))
    return (count // loops) * loops / (time.perf_counter() - began)
