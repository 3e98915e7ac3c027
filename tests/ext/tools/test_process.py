"""Programs that go on between turns."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from operant.ext.tools.keeper import Keeper
from operant.sdk import Event, Happened, Note, NotFound

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the warden is for Linux")


async def test_a_program_outlives_its_call_and_is_read_on(bench: Any) -> None:
    begun = await bench.call("start_process", command="echo one; read line; echo got $line; read line")
    assert begun.text == "one\n[p1 is running]"
    assert (await bench.call("read_process", id="p1")).text == "[p1 is running]"
    written = await bench.call("write_process", id="p1", text="words\n")
    assert written.text == "got words\n[p1 is running]"
    again = await bench.call("read_process", id="p1", offset=0)
    assert again.text == "one\ngot words\n[p1 is running]"
    ended = await bench.call("write_process", id="p1", text="", end=True)
    assert "p1 ended with code 1" in (await bench.call("wait_process", id="p1")).text or "ended" in ended.text


async def test_its_end_is_on_record_and_in_the_list(bench: Any) -> None:
    await bench.call("start_process", command="exit 3")
    assert "ended with code 3" in (await bench.call("wait_process", id="p1")).text
    async with asyncio.timeout(5):
        while not bench.host.noted:
            await asyncio.sleep(0)
    assert (bench.host.noted[0].session, bench.host.noted[0].kind) == ("s1", "process.ended")
    listed = (await bench.call("list_processes")).text
    assert listed.startswith("p1: ended with code 3 after 0 s: exit 3")
    late = await bench.call("write_process", id="p1", text="x")
    assert (late.outcome, "has ended" in late.text) == ("error", True)
    assert (await bench.call("signal_process", id="p1")).outcome == "error"


async def test_waiting_ends_with_words_or_with_time(bench: Any) -> None:
    await bench.call("start_process", command="sleep 0.3; echo ready; sleep 1000")
    assert "it said 'ready'" in (await bench.call("wait_process", id="p1", text="ready", timeout_s=10)).text
    assert "is running" in (await bench.call("wait_process", id="p1", timeout_s=0.05)).text
    stopped = await bench.call("signal_process", id="p1", signal="KILL")
    assert "ended with code" in stopped.text


async def test_a_terminal_is_one(bench: Any) -> None:
    begun = await bench.call("start_process", command="test -t 0 && test -t 1 && stty size && cat", terminal=True)
    assert "40 120" in begun.text
    echoed = await bench.call("write_process", id="p1", text="hello\n")
    assert echoed.text.count("hello") == 2
    assert "ended" in (await bench.call("write_process", id="p1", text="\x03")).text


async def test_a_session_sees_only_its_own(bench: Any) -> None:
    await bench.call("start_process", command="sleep 1000")
    assert (await bench.call("list_processes", session="other")).text == "There are none."
    with pytest.raises(NotFound, match="no process 'p1'"):
        await bench.call("read_process", session="other", id="p1")


async def test_there_is_a_limit_and_a_way_out(bench: Any) -> None:
    for _ in range(8):
        await bench.call("start_process", command="echo; sleep 1000")
    with pytest.raises(Exception, match="8 processes run already"):
        await bench.call("start_process", command="sleep 1000")
    assert "ended" in (await bench.call("signal_process", id="p3")).text
    assert "p9 is running" in (await bench.call("start_process", command="sleep 1000")).text


async def test_a_flood_is_kept_at_its_newest(bench: Any) -> None:
    await bench.call("start_process", command="yes 0123456789 | head -c 12000000; echo; echo last")
    await bench.call("wait_process", id="p1", timeout_s=20)
    early = await bench.call("read_process", id="p1", offset=0)
    assert "are no longer kept" in early.text
    assert "last" in (await bench.call("read_process", id="p1", offset=12_000_000)).text


async def test_an_archived_session_ends_its_programs_and_so_does_the_end_of_operant(
    bench: Any, workspace: Path
) -> None:
    await bench.call("start_process", command="echo $$ > pid; sleep 1000")
    pid = int((workspace / "pid").read_text())
    body = Note(kind="x")
    event = Event(session="s1", seq=1, id="e", type="session.archived", at=0, body=body)
    await bench.host.hooks["session.archived"](Happened(event=event))
    async with asyncio.timeout(5):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0)


async def test_after_a_restart_the_list_says_what_became_of_them(bench: Any) -> None:
    await bench.call("start_process", command="sleep 1000")
    later = Keeper(bench.host, lambda *what: pytest.fail("nothing is started"))  # type: ignore[arg-type]
    assert [(one.id, one.lost) for one in await later.told("s1")] == [("p1", True)]
