"""The prompt: short, and the same bytes as long as nothing changes."""

from __future__ import annotations

import pytest

from operant.ext.context.ambient import TIME_LINE, time_line
from operant.ext.context.prompt import Prompts, system_prompt
from operant.sdk import Agent, ToolSpec

START = 1_795_206_840_000_000


def tool(name: str, description: str = "") -> ToolSpec:
    return ToolSpec(name=name, description=description, schema={})


def test_our_own_block_is_short() -> None:
    assert len(system_prompt("", (tool("search_history"),), {})) / 4 <= 350


def test_the_agents_text_comes_first_and_the_search_is_named_only_where_it_is() -> None:
    without = system_prompt("I am Ann.\r\nI help.\n\n", (), {})
    with_search = system_prompt("I am Ann.", (tool("search_history"),), {})

    assert without.startswith("I am Ann.\nI help.\n\n## How to work\n")
    assert "search_history" not in without
    assert "`search_history`" in with_search


def test_tools_are_sorted_and_the_prompt_stays_the_same_object() -> None:
    prompts, agent = Prompts(), Agent(name="a", prompt="I am Ann.")

    first = prompts.of(agent, (tool("b"), tool("a")), {})
    second = prompts.of(Agent(name="a", prompt="I am Ann."), (tool("b"), tool("a")), {})

    assert [spec.name for spec in first.tools] == ["a", "b"]
    assert second is first
    assert first.reason == ""


def test_a_change_is_named() -> None:
    prompts = Prompts()
    prompts.of(Agent(name="a", prompt="I am Ann."), (tool("a"), tool("b")), {})

    changed = prompts.of(Agent(name="a", prompt="I am Bob."), (tool("b", "new"), tool("c")), {})

    assert changed.reason == "the agent's prompt changed; tools added: c; tools removed: a; tools changed: b"


@pytest.mark.parametrize(
    ("zone", "line"),
    [
        ("Europe/Berlin", "[Fri 2026-11-20 21:34 Europe/Berlin]"),
        ("Asia/Kathmandu", "[Sat 2026-11-21 02:19 Asia/Kathmandu]"),
        ("UTC", "[Fri 2026-11-20 20:34 UTC]"),
        ("Nowhere/City", "[Fri 2026-11-20 20:34 UTC]"),
        ("../../etc/passwd", "[Fri 2026-11-20 20:34 UTC]"),
        ("", "[Fri 2026-11-20 20:34 UTC]"),
    ],
)
def test_the_time_is_the_messages_own_in_the_agents_zone(zone: str, line: str) -> None:
    assert time_line(START, zone) == line
    assert TIME_LINE.fullmatch(line)
