"""The store, the command line, tokens, the prefix, and kills."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench.house import ROOT, Row, Turns, system
from operant.ext.sqlite.store import open_store
from operant.kernel.ports import Append
from operant.kernel.records import Event, Note
from operant.kit.clock import SystemClock
from operant.kit.ids import SystemIds
from operant.sdk.testing.server import scripted_server, spawned_server
from tests.crash.harness import SCRIPT, Trial, random_kills


async def appends() -> list[Row]:
    """Measure durable appends: fifty writers of 1 KB, and one."""
    directory = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT))
    clock = SystemClock()
    ids = SystemIds(clock.now)
    store = await open_store(directory, "power", clock)
    took: list[float] = []

    async def writer(session: str, count: int) -> None:
        for seq in range(1, count + 1):
            body = Note(kind="bench", text="x" * 1000)
            event = Event(session=session, seq=seq, id=ids.new(), type="note", at=clock.now(), body=body)
            began = time.perf_counter()
            await store.write(Append(events=(event,), agent="a"))
            took.append((time.perf_counter() - began) * 1000)

    try:
        began = time.perf_counter()
        await asyncio.gather(*(writer(f"s{number}", 500) for number in range(50)))
        a_second = 25_000 / (time.perf_counter() - began)
        p99 = sorted(took)[int(len(took) * 0.99)]
        took.clear()
        await writer("one", 1_000)
        single = statistics.median(took)
    finally:
        await store.close()
        shutil.rmtree(directory)
    ours = f"{a_second:,.0f}/s, p99 {p99:.1f} ms"
    return [
        Row("durable appends, 50 writers, 1 KB, power", ">= 20,000/s, p99 <= 5 ms", ours, f"one writer {single:.2f} ms")
    ]


async def long_session(full: bool) -> list[Row]:
    """Measure opening one session with many events: its end, its snapshot, and reading all of it."""
    count = 100_000 if full else 20_000
    directory = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT))
    clock = SystemClock()
    ids = SystemIds(clock.now)
    store = await open_store(directory, "process", clock)
    try:
        for start in range(0, count, 1_000):
            events = tuple(
                Event(
                    session="s", seq=seq, id=ids.new(), type="note", at=clock.now(), body=Note(kind="n", text="x" * 200)
                )
                for seq in range(start + 1, start + 1_001)
            )
            await store.write(Append(events=events, agent="a"))
        began = time.perf_counter()
        await store.head("s")
        tail = await store.events("s", count - 200)
        opened = (time.perf_counter() - began) * 1000
        assert len(tail) == 200
    finally:
        await store.close()
        shutil.rmtree(directory)
    return [Row(f"end and newest 200 of a session of {count:,} events", "<= 50 ms", f"{opened:.1f} ms")]


def commands() -> list[Row]:
    """Measure whole processes."""
    home = tempfile.mkdtemp(prefix=".bench-", dir=ROOT)
    operant = str(Path(sys.executable).with_name("operant"))
    env = {**os.environ, "OPERANT_HOME": home}
    subprocess.run([operant, "init"], env=env, check=True, capture_output=True)

    def wall(*arguments: str) -> float:
        times: list[float] = []
        for _ in range(9):
            began = time.perf_counter()
            subprocess.run(arguments, env=env, check=True, capture_output=True)
            times.append((time.perf_counter() - began) * 1000)
        return statistics.median(times)

    bare = f"python -c pass {wall(sys.executable, '-c', 'pass'):.0f} ms"
    try:
        rows = [
            Row("operant --help", "<= 60 ms", f"{wall(operant, '--help'):.0f} ms", bare),
            Row("operant version", "<= 40 ms", f"{wall(operant, 'version'):.0f} ms", bare),
            Row(
                "operant session list, nothing running", "<= 150 ms", f"{wall(operant, 'session', 'list'):.0f} ms", bare
            ),
        ]
        began = time.perf_counter()
        daemon = subprocess.Popen([operant, "serve"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        socket = Path(home) / "state" / "operant.sock"
        while not socket.exists():
            time.sleep(0.002)
        ready = (time.perf_counter() - began) * 1000
        rows.append(
            Row("operant session list, running", "<= 150 ms", f"{wall(operant, 'session', 'list'):.0f} ms", bare)
        )
        statm = Path(f"/proc/{daemon.pid}/statm")
        if statm.exists():
            resident = int(statm.read_text().split()[1]) * 4096 / 1_048_576
            rows.append(Row("resident memory, idle", "<= 60 MB", f"{resident:.0f} MB"))
        rows.append(Row("exec to ready", "<= 350 ms", f"{ready:.0f} ms"))
        daemon.terminate()
        daemon.wait(timeout=20)
    finally:
        shutil.rmtree(home)
    return rows


async def tokens() -> list[Row]:
    """Count what "hello" costs, and how much of each request the one before had."""
    async with scripted_server({"sum": [{"text": "Summary: " + "fact " * 60}]}) as server:
        async with system(server.url, more="agents: {operant: {context_ratio: 0.08}}\n") as made:
            turns = Turns(made)
            for number in range(50):
                await turns.one("s", f"message {number} " + "and some more words " * 12)
            events = await made.kernel.store.events("s")
        compactions = sum(event.type == "context.compacted" for event in events)
        asked = [one for one in server.requests if one.body.get("tools")]
    body = asked[0].body
    hello = (len(body["messages"][0]["content"]) + len(msgspec.json.encode(body["tools"]))) / 4
    stable = sum(one.common_prefix for one in asked[1:]) / sum(one.size for one in asked[:-1])
    return [
        Row(
            'first request for "hello": system prompt and tools', "<= 2,500 tokens", f"{hello:,.0f} tokens (chars / 4)"
        ),
        Row(f"prefix kept over 50 turns, {compactions} compactions", ">= 97 %", f"{stable:.1%}"),
    ]


def kills(full: bool) -> list[Row]:
    """Kill at any time and count what was lost or came twice."""
    wanted, seed, done = (1_000 if full else 30), 0, 0
    lost = doubled = given_up = 0
    slowest = 0.0
    with spawned_server({"work": SCRIPT}) as server:
        while done < wanted:
            home = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT))
            trial = Trial(home, server.url, messages=200)
            random_kills(trial, min(10, wanted - done), seed, (0.02, 0.35))
            count = trial.finish()
            done, seed = done + max(1, count.kills), seed + 1
            lost, doubled = lost + count.lost, doubled + count.doubled
            given_up += count.given_up
            slowest = max(slowest, count.slowest_s)
            shutil.rmtree(home)
    ours = f"{lost} lost, {doubled} doubled, {given_up} given up and told"
    return [
        Row(f"{done} random kills", "0 lost, 0 doubled", ours, f"slowest last life, start to all done, {slowest:.1f} s")
    ]


def measure(names: set[str], *, full: bool) -> list[Row]:
    """Run what is asked for."""
    rows: list[Row] = []
    if "appends" in names:
        rows += asyncio.run(appends())
    if "session" in names:
        rows += asyncio.run(long_session(full))
    if "commands" in names:
        rows += commands()
    if "tokens" in names:
        rows += asyncio.run(tokens())
    if "kills" in names:
        rows += kills(full)
    return rows
