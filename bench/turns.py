"""Turns: what durability and all policies add to a bare loop, and how many there are a second."""

from __future__ import annotations

import asyncio
import importlib.util
import resource
import statistics
import time

from bench.house import SCRIPTS, Bare, Row, Turns, middle, rate, system
from operant.kernel.log import Stamp
from operant.kernel.records import Delta, MessageReceived, ModelReplied, SessionOpened, TurnEnded, TurnStarted
from operant.sdk import Text
from operant.sdk.testing.server import spawned_server


async def added(url: str, count: int) -> list[Row]:
    """Measure a turn without tools against a bare call, in turn."""
    rows: list[Row] = []
    for durability, goal in (("power", "<= 1.5 ms added"), ("process", "<= 1.0 ms added")):
        async with system(url, durability) as made:
            turns, bare = Turns(made), await Bare(url).open()
            for warm in range(20):
                await turns.one(f"warm{warm}")
            ours: list[float] = []
            theirs: list[float] = []
            for number in range(count):
                ours.append(await turns.one(f"s{number // 20}"))
                theirs.append(await bare.one())
            bare.close()
        gap = statistics.median(ours) - statistics.median(theirs)
        rows.append(
            Row(
                f"turn without tools, {durability}",
                goal,
                f"{gap:.2f} ms added ({middle(ours)})",
                f"bare {middle(theirs)}",
            )
        )
    return rows


async def rates(url: str, count: int) -> list[Row]:
    """Measure turns a second, beside a bare loop and one on the official SDK."""
    rows: list[Row] = []
    async with system(url) as made:
        turns = Turns(made)
        for loops in (50, 500):
            ours = await rate(count, loops, lambda number, loops=loops: turns.one(f"r{loops}-{number}"))
            bares = [await Bare(url).open() for _ in range(loops)]
            bare = await rate(count, loops, lambda number, bares=bares: bares[number].one())
            for one in bares:
                one.close()
            sdk = await _sdk(url, min(count, 1_000), loops)
            ratio = f", openai SDK loop {sdk:,.0f}/s ({ours / sdk:.1f}x)" if sdk else ""
            rows.append(
                Row(
                    f"turns a second, {loops} sessions",
                    ">= 1,500, >= 5x SDK",
                    f"{ours:,.0f}/s",
                    f"bare {bare:,.0f}/s{ratio}",
                )
            )
    return rows


async def _sdk(url: str, count: int, loops: int) -> float:
    if importlib.util.find_spec("openai") is None:
        return 0.0
    import openai

    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def one(number: int) -> None:
            stream = await client.chat.completions.create(
                model="one", messages=[{"role": "user", "content": "hello"}], stream=True
            )
            async for _ in stream:
                pass

        return await rate(max(count, loops), loops, one)


async def steps(url: str, count: int) -> list[Row]:
    """Measure a turn of five steps with four calls of a small tool."""
    async with system(url) as made:
        turns, bare = Turns(made), await Bare(url).open()
        ours = [await turns.one(f"t{number}", f"@work n{number}") for number in range(count)]
        theirs = [sum([await bare.one() for _ in range(5)]) for _ in range(count)]
        bare.close()
    gap = statistics.median(ours) - statistics.median(theirs)
    return [Row("turn of 5 steps with tools", "<= 6 ms added", f"{gap:.2f} ms added", f"5 bare calls {middle(theirs)}")]


async def long_history(url: str, count: int) -> list[Row]:
    """Measure a turn behind much history against one behind none."""
    rows: list[Row] = []
    async with system(url) as made:
        turns = Turns(made)
        none = [await turns.one(f"new{number}") for number in range(count)]
        for size in (2_000, 20_000):
            history = made.kernel.log.history(f"long{size}")
            stamp = Stamp(agent="operant", turn="t", copied=True)
            await history.append(stamp, SessionOpened(agent="operant", channel="local", chat=f"long{size}"))
            for number in range(size // 2):
                await history.record(
                    stamp,
                    MessageReceived(parts=(Text(text=f"message {number} " * 8),)),
                    TurnStarted(),
                    ModelReplied(parts=(Text(text=f"reply {number} " * 8),), model="scripted/one", provider="scripted"),
                    TurnEnded(reason="done"),
                )
                if number % 500 == 0:
                    await history.flush()
            await history.flush()
            first = await turns.one(f"long{size}")
            ours = [await turns.one(f"long{size}") for _ in range(count)]
            gap = statistics.median(ours) - statistics.median(none)
            rows.append(
                Row(
                    f"turn behind {size:,} messages",
                    "<= 3 ms more",
                    f"{gap:.2f} ms more",
                    f"the first one (read, compacted) {first:.0f} ms",
                )
            )
    return rows


async def first_token(url: str, count: int) -> list[Row]:
    """Measure from the provider's first byte in this process to a follower."""
    import operant.kit.http as http

    marks: list[float] = []
    gaps: list[float] = []
    pieces = http.HttpResponse.pieces

    async def marked(self: http.HttpResponse) -> object:
        first = True
        async for piece in pieces(self):
            if first:
                marks.append(time.perf_counter())
                first = False
            yield piece

    async with system(url) as made:
        turns = Turns(made)
        http.HttpResponse.pieces = marked  # type: ignore[method-assign, assignment]
        try:
            for number in range(count):
                seen = asyncio.Event()

                async def follow(session: str = f"f{number}", seen: asyncio.Event = seen) -> None:
                    async for one in made.kernel.follow(session):
                        if isinstance(one, Delta) and one.kind == "text":
                            gaps.append((time.perf_counter() - marks[-1]) * 1000)
                            seen.set()
                            return

                async with asyncio.TaskGroup() as group:
                    group.create_task(follow())
                    await asyncio.sleep(0)
                    await turns.one(f"f{number}")
        finally:
            http.HttpResponse.pieces = pieces  # type: ignore[method-assign]
    return [Row("first byte of the provider to a follower", "p50 <= 1 ms", middle(gaps))]


async def memory(url: str) -> list[Row]:
    """Measure resident memory with 500 turns at once."""
    async with system(url) as made:
        idle = _resident()
        turns = Turns(made)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(turns.one(f"m{number}", "@slow")) for number in range(500)]
        busy = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        assert len(tasks) == 500
    return [
        Row(
            "resident memory, 500 turns at once",
            "<= 250 MB",
            f"{busy:.0f} MB at most",
            f"{idle:.0f} MB before, with the bench itself",
        )
    ]


def _resident() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - one line of a kernel file
        return int(file.read().split()[1]) * resource.getpagesize() / 1_048_576


def measure(names: set[str], *, full: bool) -> list[Row]:
    """Run what is asked for against one server."""
    count = 2_000 if full else 400

    async def run(url: str) -> list[Row]:
        rows: list[Row] = []
        if "turn" in names:
            rows += await added(url, count)
        if "rates" in names:
            rows += await rates(url, 2_000)
        if "steps" in names:
            rows += await steps(url, 200)
        if "history" in names:
            rows += await long_history(url, 100)
        if "token" in names:
            rows += await first_token(url, 200)
        if "memory" in names:
            rows += await memory(url)
        return rows

    with spawned_server(SCRIPTS) as server:
        return asyncio.run(run(server.url))
