"""File tools inside turns of a running kernel: what they send arrives, and what they did is taken back."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from operant.ext.kv.kv import setup as kv
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.setup import setup
from operant.kernel.kernel import Kernel
from operant.kernel.records import OWNER, Agent, BlobRef, Event, MessageQueued, ToolCall, ToolEnded, text_of
from operant.kernel.syscalls import ToolInvoke
from operant.sdk.testing.fakes import MemoryAgents
from operant.sdk.testing.system import Bench, ended, say


class Door:
    """As much of a host as the tools need, over a real kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.blobs = kernel.store
        self.ids = kernel.ids
        self.clock = kernel.clock

    def tool(self, tool: Any) -> None:
        self._kernel.gate.register(tool)

    def syscall(self, call: Any, handler: Any) -> None:
        self._kernel.syscalls.register(call, handler)

    @property
    def kept(self) -> Any:
        return self._kernel.store

    def toolbox(self, box: Any) -> None: ...

    def hook(self, point: Any, handler: Any, **how: Any) -> None: ...

    async def call(self, call: Any) -> Any:
        return await self._kernel.call(OWNER, call)


@asynccontextmanager
async def at_work(bench: Bench) -> AsyncGenerator[Kernel]:
    """Run a kernel with the tools, and with the values that they keep."""
    async with bench.running() as kernel:
        door: Any = Door(kernel)
        async with kv(door, None), setup(door, ToolsSettings()):
            yield kernel


@pytest.fixture
def bench(workspace: Path) -> Bench:
    agent = Agent(name="operant", models=("scripted/one",), workspace=str(workspace))
    return Bench(agents=MemoryAgents(agent))


def uses(name: str, **arguments: Any) -> list[ToolCall]:
    return [ToolCall(id="c1", name=name, arguments=json.dumps(arguments))]


def results(events: list[Event]) -> list[ToolEnded]:
    return [event.body for event in events if isinstance(event.body, ToolEnded)]


async def test_a_file_reaches_the_person(bench: Bench, workspace: Path) -> None:
    (workspace / "a.txt").write_text("words")
    async with at_work(bench) as kernel:
        bench.model.script(uses("send_file", path="a.txt", caption="Here."), "Done.")
        await say(kernel, "send it")
        events = await ended(kernel)
        sent = [event.body.parts for event in events if isinstance(event.body, MessageQueued)]
        assert isinstance(sent[0][0], BlobRef)
        assert (sent[0][0].name, await kernel.store.get_blob(sent[0][0].digest)) == ("a.txt", b"words")
        assert text_of(sent[1]) == "Done."


async def test_a_turn_is_taken_back_by_hand_also_after_a_restart(bench: Bench, workspace: Path) -> None:
    (workspace / "a.txt").write_text("before")
    async with at_work(bench) as kernel:
        bench.model.script(
            uses("write_file", path="a.txt", content="after"), uses("write_file", path="b.txt", content="x"), "Done."
        )
        await say(kernel, "change them")
        kept = results(await ended(kernel))[0].artifacts
        assert await kernel.store.get_blob(kept[0].digest) == b"before"  # on record, so that it is not collected
    async with at_work(bench) as kernel:
        done = await kernel.call(OWNER, ToolInvoke(name="undo_changes", arguments={}, session="s"))
        assert text_of(done.parts) == "Restored a.txt.\nDeleted b.txt."
    assert [(path.name, path.read_text()) for path in workspace.iterdir()] == [("a.txt", "before")]


async def test_a_secret_that_a_tool_has_read_is_on_no_other_record(bench: Bench, workspace: Path) -> None:
    """Notes of changes hold names and digests, and no contents."""
    async with at_work(bench) as kernel:
        bench.model.script(uses("write_file", path="a.txt", content="CANARY"), "Done.")
        await say(kernel, "write")
        await ended(kernel)
        values = await kernel.store.values("kv:files")
        assert values
        assert not any(b"CANARY" in value for _, value in values)
