"""Services of skills: what a hook in another process costs, and whether a guard can be got past.

    python -m bench hooks guards swaps skills [--full]

`--full` kills the guard a thousand times, and replaces it fifty times below a hundred sessions.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.house import ROOT, Row
from operant.kernel.points import TOOL_BEFORE, Reject, ToolInput, ToolOutput
from operant.kernel.records import ToolSpec
from operant.kernel.syscalls import SkillReload, SkillStart
from operant.sdk.testing.server import ScriptedServer
from tests.ext.services.house import GUARD, House, house, processes, write_skill

NAMES = ("hooks", "guards", "swaps", "skills")
_LETS_PASS = """
from operant_sdk import define_service

@define_service
def service():
    return {"hooks": {"tool.before": lambda input, output: None}}
"""
_LETS_PASS_TS = """
import { defineService } from "@operant/sdk";
defineService(() => ({ hooks: { "tool.before": () => undefined } }));
"""
_TRUSTED = {"services": {"trusted": ["guard"]}}


@asynccontextmanager
async def _house(server: ScriptedServer, more: dict[str, Any] | None = None) -> AsyncIterator[tuple[House, Path]]:
    top = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT))
    try:
        async with house(top / "h", server, more) as there:
            yield there, top / "h"
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _call(there: House) -> tuple[ToolInput, ToolOutput]:
    spec = ToolSpec(name="shell", description="Run a command.", schema={})
    about = ToolInput(session="s", agent=there.made.agents.get(""), call_id="c", name="shell", spec=spec)
    return about, ToolOutput(arguments={"command": "echo bad"})


async def _hook(server: ScriptedServer) -> list[Row]:
    rows: list[Row] = []
    async with _house(server) as (there, home):
        about, output = _call(there)
        hooks = there.made.kernel.hooks
        none = await _timed(lambda: hooks.run(TOOL_BEFORE, about, output), 2_000)
        for name, file, text in (("Python", "service.py", _LETS_PASS), ("Node", "service.mjs", _LETS_PASS_TS)):
            write_skill(home, "pass", {file: text}, service=f"./{file}")
            await there.grant("pass")
            times = await _timed(lambda: hooks.run(TOOL_BEFORE, about, output), 5_000)
            p50, p99 = (1_000 * times[int(len(times) * part)] for part in (0.5, 0.99))
            ours = f"p50 {p50:.3f} ms, p99 {p99:.3f} ms"
            beside = f"without it {1_000 * none[len(none) // 2]:.3f} ms; ten: {10 * p50:.2f} ms"
            rows.append(Row(f"hook in another process ({name})", "p50 0.2 ms; ten 2 ms", ours, beside))
            shutil.rmtree(home / "skills" / "pass")
            await there.call(SkillReload())
    return rows


async def _timed(work: object, times: int) -> list[float]:
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        await work()  # type: ignore[operator]
        taken.append(time.perf_counter() - began)
    return sorted(taken)


async def _guards(server: ScriptedServer, kills: int) -> Row:
    """Kill a guard again and again while calls are made that it refuses; count those that get past."""
    async with _house(server) as (there, home):
        write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="no")}, hooks="tool.before")
        await there.grant("guard")
        about, output = _call(there)
        hooks = there.made.kernel.hooks
        slipped = calls = 0
        noticed: list[float] = []
        for _ in range(kills):
            (pid,) = [one for one in processes(f"{home}/state") if _is_python(one)]
            async with asyncio.TaskGroup() as group:  # calls are under way in the moment of its death
                tasks = [group.create_task(hooks.run(TOOL_BEFORE, about, output)) for _ in range(20)]
                await asyncio.sleep(0)
                os.kill(pid, signal.SIGKILL)
                began = time.perf_counter()
            verdicts = [task.result().verdict for task in tasks]
            while not _is_down(verdicts[-1]):
                verdicts.append((await hooks.run(TOOL_BEFORE, about, output)).verdict)
            noticed.append(time.perf_counter() - began)
            calls += len(verdicts)
            slipped += sum(not isinstance(verdict, Reject) for verdict in verdicts)
            await there.call(SkillStart(skill="guard"))
        noticed.sort()
        p50, p99, worst = (1_000 * noticed[int(part * (len(noticed) - 1))] for part in (0.5, 0.99, 1))
        times = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, at most {worst:.1f} ms"
        ours = f"{slipped} of {calls} calls past it in {kills} kills; noticed after {times}"
        return Row("a guard is killed", "0 past it in 1,000; 20 ms", ours)


def _is_down(verdict: object) -> bool:
    return isinstance(verdict, Reject) and verdict.reason != "no"


def _is_python(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text("ascii").startswith("python")
    except OSError:
        return False


async def _swaps(server: ScriptedServer, sessions: int, versions: int) -> Row:
    server.script("go", [{"calls": [{"name": "shell", "arguments": {"command": "echo bad"}}]}, {"text": "Done."}])
    async with _house(server, _TRUSTED) as (there, home):
        write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="version 0")}, hooks="tool.before")
        await there.call(SkillReload())
        await there.until("guard", lambda one: one.state == "running")
        done = asyncio.Event()

        async def replace() -> None:
            for version in range(1, versions + 1):
                before = (await there.info("guard")).generation
                text = GUARD.format(word="bad", reason=f"version {version}")
                write_skill(home, "guard", {"service.py": text}, hooks="tool.before")
                await there.call(SkillReload())
                await there.until("guard", lambda one, before=before: one.generation > before, 60)
            done.set()

        async def talk(number: int) -> tuple[int, list[str]]:
            turns, said = 0, []
            while not done.is_set():
                turns += 1
                said = await there.says("@go", f"s{number}", turns)
            return turns, said

        async with asyncio.TaskGroup() as group:
            group.create_task(replace())
            talks = [group.create_task(talk(number)) for number in range(sessions)]
        turns = sum(one.result()[0] for one in talks)
        said = [answer for one in talks for answer in one.result()[1]]
        past = sum("version" not in answer for answer in said)
        ours = f"{turns} turns of {sessions} sessions, {turns - len(said)} failed, {past} past it, {versions} versions"
        return Row("a guard is replaced under load", "0 failed, 0 past it", ours)


async def _skills(server: ScriptedServer) -> list[Row]:
    async with _house(server, _TRUSTED) as (there, home):
        began = time.perf_counter()
        write_skill(home, "guard", {"service.py": GUARD.format(word="bad", reason="no")}, hooks="tool.before")
        await there.call(SkillReload())
        await there.until("guard", lambda one: one.state == "running")
        live = time.perf_counter() - began
    rows = [Row("a new folder with a service, looked at at once", "2 s with 0.3 s of waiting", f"{live:.2f} s")]
    bare = await _start(server, {"extensions": {"disabled": ["services", "skills", "a2a", "subagents", "renewal"]}})
    whole = await _start(server, {})
    ours = f"{1_000 * (whole - bare):.0f} ms"
    beside = f"{1_000 * whole:.0f} ms with them, {1_000 * bare:.0f} ms without"
    return [*rows, Row("services, skills, a2a, sub-agents at a start", "150 ms", ours, beside)]


async def _start(server: ScriptedServer, more: dict[str, Any]) -> float:
    """Return the median of starts in this process: what is imported counts only the first time."""
    taken: list[float] = []
    for _ in range(7):
        began = time.perf_counter()
        async with _house(server, more):
            taken.append(time.perf_counter() - began)
    return sorted(taken)[len(taken) // 2]


def measure(names: set[str], *, full: bool = False) -> list[Row]:
    """Measure what is named."""
    return asyncio.run(_measure(names, full)) if names & set(NAMES) else []


async def _measure(names: set[str], full: bool) -> list[Row]:
    rows: list[Row] = []
    server = ScriptedServer()
    async with server.serving():
        if "hooks" in names:
            rows += await _hook(server)
        if "guards" in names:
            rows.append(await _guards(server, 1_000 if full else 30))
        if "swaps" in names:
            rows.append(await _swaps(server, 100, 50 if full else 5))
        if "skills" in names:
            rows += await _skills(server)
    return rows
