"""The recorded task of the docs is done again: the same tools, with the same outcomes, and every tool there is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from examples.real_task import page, record, told
from operant.kernel.records import ToolEnded, ToolStarted, TurnEnded
from operant.kit.sandbox import find_bubblewrap
from tests.docs.tools_offered import offered

DOCS = Path(__file__).parents[2] / "docs"
CALL = re.compile(r"^\*\*`(\w+)`\*\*.*?(→ \w+)?$", re.MULTILINE)

pytestmark = [
    pytest.mark.skipif(not find_bubblewrap(), reason="bubblewrap is not installed: apt-get install bubblewrap"),
    pytest.mark.skipif(not shutil.which("git"), reason="git is not installed: apt-get install git"),
]


async def test_it_is_done_again_as_recorded_and_uses_every_tool(tmp_path: Path) -> None:
    events, issue = await record()
    assert isinstance(events[-1].body, TurnEnded)
    assert events[-1].body.reason == "done"
    now, then = page(told(events, issue)), (DOCS / "recorded-task.md").read_text()
    assert CALL.findall(now) == CALL.findall(then)
    failed = [event.body for event in events if isinstance(event.body, ToolEnded) and event.body.outcome != "ok"]
    assert [one.name for one in failed] == ["shell"]  # the tests, before the mend
    used = {event.body.name for event in events if isinstance(event.body, ToolStarted)}
    assert await offered(tmp_path) - used == {"use_tool"}  # whose calls are those of the tools that it names
