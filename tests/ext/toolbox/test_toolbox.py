"""A hundred tools that cost next to nothing until one is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from operant.ext.toolbox.ranking import ranked
from operant.ext.toolbox.setup import setup
from operant.kernel.records import OWNER, Agent, Limits, ModelRequest, Permissions, ToolCall, ToolEnded, ToolStarted
from operant.kernel.syscalls import ToolInvoke, ToolList
from operant.sdk import FunctionTool, ToolSpec, text_of, tool
from operant.sdk.testing.fakes import MemoryAgents
from operant.sdk.testing.system import Bench, ended, say, told


def many(count: int) -> list[FunctionTool]:
    async def work(what: str = "") -> str:
        return f"did {what}"

    work.__doc__ = "Do one of many things."
    return [FunctionTool(work, effect="read", name=f"thing_{at}", deferred=True) for at in range(count)]


def using(name: str, arguments: Any, id: str = "c1") -> ToolCall:
    return ToolCall(
        id=id, name="use_tool", arguments=msgspec.json.encode({"name": name, "arguments": arguments}).decode()
    )


class Door:
    """As much of a host as the feature needs."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def tool(self, tool: Any) -> None:
        self._kernel.gate.register(tool)

    async def call(self, call: Any) -> Any:
        return await self._kernel.call(OWNER, call)


@pytest.fixture
async def bench() -> AsyncIterator[tuple[Bench, Any]]:
    bench = Bench()
    async with bench.running() as kernel, setup(Door(kernel), None):  # type: ignore[arg-type]
        yield bench, kernel


async def test_a_hundred_tools_cost_no_more_than_two_hundred_tokens_at_rest(bench: tuple[Bench, Any]) -> None:
    _, kernel = bench
    agent = kernel.agents.get("")
    for one in many(100):
        kernel.gate.register(one)
    shown = kernel.gate.shown(agent, "s")
    assert [spec.name for spec in shown] == ["tool_search", "use_tool"]
    sent = [{"name": one.name, "description": one.description, "parameters": one.schema} for one in shown]
    assert len(msgspec.json.encode(sent)) / 4 <= 200


async def test_a_tool_is_found_and_used_and_the_prefix_stays(bench: tuple[Bench, Any]) -> None:
    made, kernel = bench
    for one in many(3):
        kernel.gate.register(one)
    search = ToolCall(id="c0", name="tool_search", arguments='{"query":"thing_2"}')
    made.model.script([search], [using("thing_2", {"what": "it"})], "Done.")
    await say(kernel, "do it")
    events = await ended(kernel)
    assert told(events) == ["Done."]
    started = [event.body for event in events if isinstance(event.body, ToolStarted)]
    assert [(one.name, one.arguments) for one in started][1] == ("thing_2", {"what": "it"})
    results = [text_of(event.body.parts) for event in events if isinstance(event.body, ToolEnded)]
    assert "thing_2" in results[0]
    assert '"what"' in results[0]
    assert results[1] == "did it"
    assert len({msgspec.json.encode(request.tools) for request in made.model.requests}) == 1


async def test_what_the_gate_refuses_is_refused_through_the_other_door_too() -> None:
    agent = Agent(name="operant", models=("scripted/one",), permissions=Permissions(deny=("thing_1",)), limits=Limits())
    bench = Bench(agents=MemoryAgents(agent))
    async with bench.running() as kernel, setup(Door(kernel), None):  # type: ignore[arg-type]
        for one in many(2):
            kernel.gate.register(one)
        bench.model.script(
            [using("thing_1", {"what": "it"})],
            [using("thing_0", {"wrong": 1}, "c2")],
            [using("nothing", {}, "c3")],
            [ToolCall(id="c4", name="use_tool", arguments="[]")],
            [using("use_tool", {"name": "use_tool"}, "c5")],
            "Done.",
        )
        await say(kernel, "do it")
        events = await ended(kernel)
    results = [(event.body.outcome, text_of(event.body.parts)) for event in events if isinstance(event.body, ToolEnded)]
    assert [outcome for outcome, _ in results] == ["error"] * 5
    assert "no tool 'thing_1'" in results[0][1]
    assert "thing_0" in results[1][1]
    assert "no tool 'nothing'" in results[2][1]
    assert not [event for event in events if isinstance(event.body, ToolStarted) and event.body.name == "thing_1"]


async def test_without_a_door_to_them_deferred_tools_are_told_like_any_other() -> None:
    bench = Bench()
    async with bench.running() as kernel:
        for one in many(2):
            kernel.gate.register(one)
        shown: list[ModelRequest] = bench.model.requests
        await say(kernel, "hello")
        await ended(kernel)
    assert [spec.name for spec in shown[0].tools] == ["thing_0", "thing_1"]


async def test_a_toolbox_gives_each_agent_its_own_and_never_hides_the_systems() -> None:
    @tool(effect="read")
    async def look() -> str:
        """Look."""
        return "the system's"

    @tool(effect="read", name="look")
    async def other_look() -> str:
        """Look elsewhere."""
        return "another"

    @tool(effect="read")
    async def extra() -> str:
        """Do more."""
        return "more"

    class Box:
        def tools(self, agent: Agent, session: str = "") -> dict[str, Any]:
            return {"look": other_look, "extra": extra} if agent.name == "operant" else {}

    bench = Bench(agents=MemoryAgents(Agent(name="operant"), Agent(name="other")))
    async with bench.running() as kernel:
        kernel.gate.register(look)
        kernel.gate.add(Box())
        assert [spec.name for spec in await kernel.call(OWNER, ToolList(agent="operant"))] == ["extra", "look"]
        assert [spec.name for spec in await kernel.call(OWNER, ToolList(agent="other"))] == ["look"]
        result = await kernel.call(OWNER, ToolInvoke(name="look", arguments={}, agent="operant"))
        assert text_of(result.parts) == "the system's"


def test_words_find_tools_by_name_description_and_parameters() -> None:
    def spec(name: str, description: str, *parameters: str) -> ToolSpec:
        return ToolSpec(name=name, description=description, schema={"properties": {key: {} for key in parameters}})

    specs = [
        spec("start_process", "Start a command in the background.", "command"),
        spec("apply_patch", "Change several files by a unified diff.", "patch"),
        spec("send_file", "Send a file to the person.", "path", "caption"),
    ]
    assert ranked("background processes", specs)[0].name == "start_process"
    assert ranked("patches", specs)[0].name == "apply_patch"
    assert [one.name for one in ranked("caption", specs)] == ["send_file"]
    assert [one.name for one in ranked("send_file, apply_patch", specs)[:2]] == ["apply_patch", "send_file"]
    assert ranked("zebra", specs) == []
