"""Tools that a person or an agent writes into the workspace, in the sandbox of the agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from operant.app.build import System
from operant.kernel.records import OWNER, ApprovalAsked, ToolEnded
from operant.kernel.syscalls import ApprovalAnswer, ToolInvoke, ToolList
from operant.kit.sandbox import find_bubblewrap
from operant.sdk import text_of
from operant.sdk.testing.server import ScriptedServer, scripted_server
from tests.journey.house import ended, say, system

pytestmark = pytest.mark.skipif(not find_bubblewrap(), reason="bubblewrap is not installed: apt-get install bubblewrap")

OURS = '''
from typing import Annotated
from operant.sdk import CallContext, Output, tool

@tool(effect="read")
async def greet(name: Annotated[str, "who"], call: CallContext, output: Output) -> str:
    """Greet somebody."""
    output("working")
    return f"hello {name} from {call.agent.name}"

@tool(effect="read")
def add(a: int, b: int = 1) -> str:
    """Add numbers."""
    return str(a + b)
'''
SEEDS = """
from operator_use.tools.service import Tool, ToolResult
from pydantic import BaseModel

class MyParams(BaseModel):
    input: str

@Tool(name="my_tool", description="What this tool does", model=MyParams)
def my_tool(input: str) -> ToolResult:
    if input == "bad":
        return ToolResult.error_result("not this")
    return ToolResult.success_result(input.upper())

@Tool(name="later", description="Async", model=MyParams)
async def later(input: str) -> ToolResult:
    return ToolResult.success_result(input[::-1])
"""
ALLOWED: dict[str, object] = {"agents": {"operant": {"approval": {"*": "allow"}}}}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        yield server


def use(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": "use_tool", "arguments": {"name": name, "arguments": arguments}}]}


def write(home: Path, name: str, source: str) -> Path:
    folder = home / "agents" / "operant" / "workspace" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(source)
    return folder / name


async def asked(made: System, session: str = "s", number: int = 1) -> list[ApprovalAsked]:
    async with asyncio.timeout(20):
        while True:
            events = await made.kernel.store.events(session)
            questions = [event.body for event in events if isinstance(event.body, ApprovalAsked)]
            if len(questions) >= number:
                return questions
            await asyncio.sleep(0)


async def allow(made: System, question: ApprovalAsked) -> None:
    await made.kernel.call(OWNER, ApprovalAnswer(approval_id=question.approval_id, answer="allow"))


def results(events: list[Any]) -> list[tuple[str, str]]:
    return [(event.body.outcome, text_of(event.body.parts)) for event in events if isinstance(event.body, ToolEnded)]


async def test_ours_and_the_seeds_are_found_used_and_reviewed_once(tmp_path: Path, server: ScriptedServer) -> None:
    pytest.importorskip("pydantic", reason="the seed's example wants pydantic: pip install pydantic")
    home = tmp_path / "home"
    server.script("go", [use("greet", name="you"), use("add", a=2), use("my_tool", input="loud"), {"text": "Done."}])
    server.script("more", [use("my_tool", input="bad"), use("later", input="abc"), use("my_tool"), {"text": "Done."}])
    async with system(home, server, ALLOWED) as made:
        write(home, "ours.py", OURS)
        write(home, "seeds.py", SEEDS)
        await say(made, "@go")
        first, second = (await asked(made))[0], None
        assert "new or has changed" in first.question
        await allow(made, first)
        second = (await asked(made, number=2))[1]
        await allow(made, second)
        assert (first.name, second.name) == ("greet", "my_tool")
        assert results(await ended(made)) == [("ok", "hello you from operant"), ("ok", "3"), ("ok", "LOUD")]
        await say(made, "@more")
        bad, reverse, wrong = results(await ended(made, 2))[3:]
        assert (bad, reverse, wrong[0]) == (("error", "not this"), ("ok", "cba"), "error")
        assert "input" in wrong[1]
        names = {spec.name for spec in await made.kernel.call(OWNER, ToolList(agent="operant")) if spec.deferred}
        assert {"greet", "add", "my_tool", "later"} <= names


async def test_a_change_is_live_and_is_asked_about_again(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "home"
    server.script("go", [use("add", a=2), {"text": "Done."}])
    async with system(home, server, ALLOWED) as made:
        write(home, "ours.py", OURS)
        await say(made, "@go")
        await allow(made, (await asked(made))[0])
        await ended(made)
        write(home, "ours.py", OURS.replace("a + b", "a * 100"))
        await say(made, "@go")
        await allow(made, (await asked(made, number=2))[1])
        assert [text for _, text in results(await ended(made, 2))] == ["3", "200"]
        (home / "agents/operant/workspace/tools/ours.py").unlink()
        await say(made, "@go")
        assert "no tool 'add'" in results(await ended(made, 3))[-1][1]


async def test_a_tool_that_an_agent_writes_is_there_in_the_same_turn(tmp_path: Path, server: ScriptedServer) -> None:
    writing = {"calls": [{"name": "write_file", "arguments": {"path": "tools/ours.py", "content": OURS}}]}
    server.script("go", [writing, use("add", a=4), {"text": "Done."}])
    async with system(tmp_path / "home", server, ALLOWED) as made:
        await say(made, "@go")
        await allow(made, (await asked(made))[0])
        assert results(await ended(made))[-1] == ("ok", "5")


async def test_a_clash_is_skipped_with_a_warning_and_a_broken_file_hurts_nobody(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "home"
    taken = OURS.replace("async def greet", "async def read_file")
    server.script("go", [use("read_file", name="x"), use("add", a=1), {"text": "Done."}])
    async with system(home, server, ALLOWED) as made:
        write(home, "a.py", taken)
        write(home, "b.py", "raise RuntimeError('boom at import')")
        write(home, "c.py", "import os; os._exit(3)")
        write(home, "_helper.py", OURS)
        await say(made, "@go")
        await allow(made, (await asked(made))[0])
        events = await ended(made)
        assert results(events)[0][0] == "error"  # the system's read_file, with arguments that are not its own
        assert results(events)[1] == ("ok", "2")
    warned = (home / "logs" / "operant.log").read_text().splitlines()
    assert any("read_file" in line and "skipped" in line for line in warned)
    assert any("b.py" in line and "boom at import" in line for line in warned)
    assert any("c.py" in line and "code 3" in line for line in warned)


async def test_it_has_the_rights_of_the_agent_and_looking_at_it_changes_nothing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    home = tmp_path / "home"
    secret = tmp_path / "secret.txt"
    secret.write_text("CANARY")
    source = f'''
import os, pathlib, json
from operant.sdk import tool
try:
    pathlib.Path("written-at-import").write_text("x")
except OSError:
    pass

@tool(effect="read")
def probe() -> str:
    """Look around."""
    def can(path):
        return os.path.exists(path)
    pathlib.Path("written").write_text("x")
    return json.dumps([can({str(secret)!r}), can({str(home / "operant.yaml")!r}), "KEY" in str(os.environ)])
'''
    server.script("go", [use("probe"), {"text": "Done."}])
    async with system(home, server, ALLOWED) as made:
        write(home, "probe.py", source)
        workspace = home / "agents/operant/workspace"
        await say(made, "@go")
        question = (await asked(made))[0]
        assert not (workspace / "written-at-import").exists()
        await allow(made, question)
        outcome, text = results(await ended(made))[0]
        assert (outcome, json.loads(text)) == ("ok", [False, False, False])
        assert (workspace / "written").exists()


async def test_by_hand_the_owner_decides_by_running_it(tmp_path: Path, server: ScriptedServer) -> None:
    home = tmp_path / "home"
    async with system(home, server, ALLOWED) as made:
        write(home, "ours.py", OURS)
        await say(made, "hello")
        await ended(made)
        result = await made.kernel.call(OWNER, ToolInvoke(name="add", arguments={"a": 41}))
        assert text_of(result.parts) == "42"
