"""The gateway: what HTTP adds to a turn, how soon a token is at a watcher, a crowd of watchers, a start, a flood."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from bench.house import ROOT, Row, Turns
from operant.kernel.records import Delta, Event
from operant.sdk.testing.server import ScriptedServer, spawned_server
from tests.journey.gateway import served

CHUNKS = 40
STORY = [{"text": " ".join(f"w{number:03}" for number in range(CHUNKS)), "chunks": CHUNKS, "chunk_delay_ms": 50}]
STAGGER_MS = "1.1"
"""The streams do not keep step: each begins a little later."""
FLOOD = 'timeout 5 sh -c \'while :; do head -c 1000000 /dev/zero | tr "\\0" "x" | fold -w 100; sleep 0.1; done\''
SCRIPTS: dict[str, Any] = {
    "quick": [{"text": "Hello."}],
    "story": STORY,
    "flood": [{"calls": [{"name": "shell", "arguments": {"command": FLOOD}}]}, {"text": "Over."}],
}


def spread(values: list[float]) -> str:
    """Say the middle and the slow end."""
    ordered = sorted(values)
    return f"p50 {statistics.median(ordered):.2f}, p99 {ordered[int(len(ordered) * 0.99)]:.2f} ms"


async def http(url: str, count: int) -> Row:
    """Measure a blocking chat against the kernel's own turn, in turn."""
    home = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT))
    server = ScriptedServer()
    server.url = url
    async with served(home / "home", server) as house:
        turns = Turns(house.system)
        own: list[float] = []
        ours: list[float] = []
        for number in range(count):
            own.append(await turns.one(f"k{number}", "@quick"))
            began = time.perf_counter()
            await house.post(f"/api/chat/h{number}", {"message": "@quick"})
            ours.append((time.perf_counter() - began) * 1000)
    shutil.rmtree(home)
    gap = statistics.median(ours) - statistics.median(own)
    beside = f"kernel's own turn {statistics.median(own):.2f} ms"
    return Row("`POST /api/chat`, over the kernel's own turn", "<= 1.5 ms", f"{gap:.2f} ms added", beside)


async def first(url: str) -> Row:
    """Measure from the kernel's delta to the client's frame, 50 streams that do not keep step."""
    home = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT))
    server = ScriptedServer()
    server.url = url
    shown: dict[tuple[str, str], int] = {}
    async with served(home / "home", server) as house:
        log = house.system.kernel.log
        show = log.show

        def note(seen: Event | Delta) -> None:
            if isinstance(seen, Delta) and seen.kind == "text":
                shown[seen.session, seen.text] = time.monotonic_ns()
            show(seen)

        log.show = note
        seen = await crowd(house.ws, house.token, "s", 50, 1)
    shutil.rmtree(home)
    waits = [(at - shown[session, text]) / 1e6 for session, text, at in seen["deltas"] if (session, text) in shown]
    return Row(
        "model's token to WebSocket byte, 50 streams",
        "p50 <= 1, p99 <= 5 ms",
        spread(waits),
        "client in a process of its own",
    )


async def many(url: str) -> Row:
    """Measure 500 windows on 50 running sessions of a real daemon: what is lost, how late, how large it gets."""
    async with daemon(url) as (process, address, token):
        alone = await crowd(address.replace("http", "ws", 1), token, "a", 50, 1)
        seen = await crowd(address.replace("http", "ws", 1), token, "b", 50, 10)
        memory = resident(process.pid)
    late = delays(seen["deltas"])
    before = delays(alone["deltas"])
    added = sorted(late)[int(len(late) * 0.99)] - sorted(before)[int(len(before) * 0.99)]
    return Row(
        "500 WebSockets on 50 running sessions",
        "0 lost, p99 <= 50 ms more, <= 250 MB",
        f"{seen['lost']} lost of {seen['frames']:,} frames, p99 {added:.1f} ms more, {memory / 1e6:.0f} MB",
    )


def delays(deltas: list[list[Any]]) -> list[float]:
    """Return how much later than the even pace of its session each piece came, in milliseconds.

    The model speaks every 50 ms, so the earliest piece against that pace tells when it began.
    """
    found: list[float] = []
    by_window: dict[str, list[tuple[int, int]]] = {}
    for session, text, at in deltas:
        number = int(re.search(r"w(\d+)", text)[1]) if "w" in text else 0  # type: ignore[index]
        by_window.setdefault(session, []).append((number, at))
    for pieces in by_window.values():
        start = min(at - number * 50_000_000 for number, at in pieces)
        found += [(at - number * 50_000_000 - start) / 1e6 for number, at in pieces]
    return found


async def start(count: int) -> Row:
    """Measure from the start of a process to the first 200 of `/readyz`."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "OPERANT_HOME": f"{folder}/home"}
        subprocess.run([sys.executable, "-m", "operant", "init"], env=env, capture_output=True, check=True)
        for _ in range(count):
            took.append(await asyncio.to_thread(_start, env))
    return Row(
        "`operant serve`, exec to `/readyz` 200", "<= 500 ms", f"{statistics.median(took):.0f} ms", f"of {count}"
    )


def _start(env: dict[str, str]) -> float:
    import http.client

    words = [sys.executable, "-m", "operant", "serve", "--port", "48231"]
    began = time.perf_counter()
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL) as process:
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", 48231, timeout=5)
            try:
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    took = time.perf_counter() - began
                    break
            except OSError:
                time.sleep(0.002)
            finally:
                connection.close()
        process.terminate()
    return took * 1000


async def flood(url: str) -> Row:
    """Measure a tool that puts out about ten MB a second, watched by one window: what is sent, how the server is."""
    async with daemon(url, "agents: {operant: {approval: {shell: allow}}}\n") as (process, address, token):
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(headers=headers) as web:
            before, sent, pings = resident(process.pid), 0, list[float]()
            async with (
                web.ws_connect(f"{address.replace('http', 'ws', 1)}/ws/f") as socket,
                asyncio.TaskGroup() as group,
            ):
                watching = group.create_task(_ping(web, address, pings))
                await socket.send_str(json.dumps({"type": "message", "content": "@flood"}))
                async for message in socket:
                    sent += len(message.data)
                    if '"type":"done"' in message.data:
                        break
                watching.cancel()
            after = resident(process.pid)
    return Row(
        "10 MB/s of tool output into one session, 5 s",
        "bounded",
        f"{sent / 1e6:.1f} MB sent, memory +{(after - before) / 1e6:.0f} MB, /healthz {spread(pings)}",
    )


async def _ping(web: aiohttp.ClientSession, address: str, pings: list[float]) -> None:
    while True:
        began = time.perf_counter()
        async with web.get(f"{address}/healthz"):
            pings.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.02)


async def crowd(url: str, token: str, name: str, sessions: int, windows: int) -> Any:
    """Let clients watch, in a process of their own, and return what they saw."""
    words = [url, token, name, str(sessions), str(windows), STAGGER_MS, "@story"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.crowd", *words, stdout=subprocess.PIPE, cwd=ROOT
    )
    out, _ = await process.communicate()
    return json.loads(out)


@asynccontextmanager
async def daemon(url: str, more: str = "") -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    """Run `operant serve`; yield the process, the address and the owner's token."""
    home = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT))
    config = f"defaults: {{models: [scripted/one]}}\nproviders: {{scripted: {{base_url: '{url}'}}}}\n"
    (home / "operant.yaml").write_text(f"{config}gateway: {{port: 0}}\n{more}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "operant", "serve", stdout=subprocess.PIPE, env={**os.environ, "OPERANT_HOME": str(home)}
    )
    assert process.stdout
    address = ""
    while not address:
        found = re.search(rb"http://[\d.]+:\d+", await process.stdout.readline())
        address = found[0].decode() if found else ""
    try:
        yield process, address, (home / "state" / "token").read_text().strip()
    finally:
        process.terminate()
        await process.wait()
        shutil.rmtree(home)


def resident(pid: int) -> int:
    """Return a process's resident memory in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _measure(names: set[str], url: str) -> list[Row]:
    rows: list[Row] = []
    if "http" in names:
        rows.append(await http(url, 200))
    if "first" in names:
        rows.append(await first(url))
    if "crowd" in names:
        rows.append(await many(url))
    if "start" in names:
        rows.append(await start(7))
    if "flood" in names:
        rows.append(await flood(url))
    return rows


def measure(names: set[str]) -> list[Row]:
    """Measure what is named."""
    if not names & {"http", "first", "crowd", "start", "flood"}:
        return []
    with spawned_server(SCRIPTS) as server:
        return asyncio.run(_measure(names, server.url))
