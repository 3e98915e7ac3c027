"""Tools for programs that go on between turns: servers, builds, things that ask questions."""

from __future__ import annotations

import asyncio
import signal as signals
from collections.abc import Callable
from typing import Annotated, Literal

from operant.ext.tools.keeper import Keeper, Process, Told
from operant.kit.proc import CannotStart
from operant.kit.text import plain
from operant.sdk import CallContext, FunctionTool, ToolResult, failed, tool

LONGEST_WAIT_S = 600.0
_FIRST_LOOK_S = 0.5
_PAUSE_S = 0.1
_NOTE_CHARS = 200
Signal = Literal["INT", "TERM", "KILL", "HUP", "USR1", "USR2"]


def process_tools(keeper: Keeper) -> tuple[FunctionTool, ...]:
    """Make the tools that start, watch, write to and end processes."""
    return *_driving(keeper), *_watching(keeper)


def _driving(keeper: Keeper) -> tuple[FunctionTool, ...]:
    @tool(effect="external", timeout_s=60, deferred=True)
    async def start_process(
        command: str,
        call: CallContext,
        cwd: Annotated[str, "relative to the workspace"] = "",
        terminal: Annotated[bool, "give it a terminal (120 x 40)"] = False,
    ) -> str | ToolResult:
        """Start a shell command in the background: it runs on after this turn. Gives its id and its first words."""
        if "\0" in command:
            return failed("A command cannot have a NUL character in it.")
        try:
            process = await keeper.start(call, command, cwd, terminal)
        except CannotStart as error:
            return failed(str(error))
        await _first_words(process)
        return _news(process, call)

    @tool(effect="external", timeout_s=30, deferred=True)
    async def write_process(
        id: str, text: str, call: CallContext, end: Annotated[bool, "then close its input"] = False
    ) -> str | ToolResult:
        """Write to a background process; add \\n for Enter, \\x03 is Ctrl-C on a terminal. Gives what it says then."""
        process = keeper.get(call.session, id)
        data = text.encode("utf-8", "replace")
        process.asked_at = process.spool.end
        written = process.program.write(data)
        if end:
            process.program.close_input()
        if written < len(data):
            return failed(f"{id} took {written} of {len(data)} bytes: it has ended, or reads nothing now.")
        await _first_words(process)
        return _news(process, call)

    @tool(effect="external", timeout_s=30, deferred=True)
    async def signal_process(id: str, call: CallContext, signal: Signal = "TERM") -> str | ToolResult:
        """Send a signal to a background process and all that it started."""
        process = keeper.get(call.session, id)
        if not process.program.signal(getattr(signals, f"SIG{signal}")):
            return failed(f"{id} has ended already.")
        await _first_words(process)
        return _news(process, call)

    return start_process, write_process, signal_process


def _watching(keeper: Keeper) -> tuple[FunctionTool, ...]:
    @tool(effect="read", timeout_s=30, deferred=True)
    async def list_processes(call: CallContext) -> str:
        """List the background processes of this conversation."""
        return "\n".join(_line(one) for one in await keeper.told(call.session)) or "There are none."

    @tool(effect="read", timeout_s=30, deferred=True)
    async def read_process(id: str, call: CallContext, offset: Annotated[int, "in bytes; -1: what is new"] = -1) -> str:
        """Read what a background process said."""
        process = keeper.get(call.session, id)
        return _news(process, call) if offset < 0 else _read(process, call, offset)

    @tool(effect="read", timeout_s=LONGEST_WAIT_S + 10, deferred=True)
    async def wait_process(
        id: str,
        call: CallContext,
        text: Annotated[str, "until it says this; empty: ends"] = "",
        timeout_s: Annotated[float, "at most 600"] = 60.0,
    ) -> str:
        """Wait until a background process ends or says something."""
        process = keeper.get(call.session, id)
        seconds = min(max(timeout_s, 0.0), LONGEST_WAIT_S)
        await _until(process, lambda: bool(text) and _said(process, text), seconds)
        found = f"\n[it said {text!r}]" if text and _said(process, text) else ""
        return f"{_news(process, call)}{found}"

    return list_processes, read_process, wait_process


async def _first_words(process: Process) -> None:
    """Wait a moment for words, and then for a pause in them."""
    if await _until(process, lambda: process.spool.end > process.read_upto, _FIRST_LOOK_S):
        while process.running:
            process.more.clear()
            if not await _until(process, process.more.is_set, _PAUSE_S):
                return


async def _until(process: Process, there: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is there or the process has ended; false when it took too long."""
    try:
        async with asyncio.timeout(seconds):
            while process.running and not there():
                process.more.clear()
                await process.more.wait()
    except TimeoutError:
        return False
    return True


def _said(process: Process, words: str) -> bool:
    """Tell whether a process said something since it was last written to."""
    _, data = process.spool.read(process.asked_at, process.spool.end)
    return words.encode() in data


def _news(process: Process, call: CallContext) -> str:
    """Return what was not read yet, and how the process stands."""
    return _read(process, call, process.read_upto)


def _read(process: Process, call: CallContext, offset: int) -> str:
    room = max(call.agent.limits.tool_output_chars - _NOTE_CHARS, 64)
    spool = process.spool
    begin, data = spool.read(offset, room)
    process.read_upto = max(process.read_upto, begin + len(data))
    lost = f"[{begin - offset:,} bytes are no longer kept]\n" if begin > offset else ""
    left = spool.end - begin - len(data)
    more = f"\n[{left:,} bytes more; offset={begin + len(data)}]" if left else ""
    words = plain(data.decode("utf-8", "replace")).rstrip("\n")
    return f"{lost}{words}{more}\n[{_state(process)}]".lstrip("\n")


def _state(process: Process) -> str:
    told = process.told
    if process.running:
        return f"{told.id} is running"
    return f"{told.id} ended with code {process.program.code}"


def _line(told: Told) -> str:
    state = "running"
    if told.lost:
        state = "ended when Operant stopped"
    elif told.ended:
        state = f"ended with code {told.code} after {(told.ended - told.began) / 1_000_000:.0f} s"
    return f"{told.id}: {state}: {told.command}"
