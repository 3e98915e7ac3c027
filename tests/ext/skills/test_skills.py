"""Skills in a running system: found, told, read, run, written; and what they must not lead to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from operant.app.build import System
from operant.ext.skills.settings import SkillSettings
from operant.ext.skills.shelf import Shelf
from operant.ext.skills.tools import listing
from operant.kernel.errors import Conflict, Invalid, NotFound
from operant.kernel.records import OWNER, Agent, Permissions, Text, ToolResult
from operant.kernel.syscalls import SkillAdd, SkillGet, SkillList, SkillRemove, SkillReset, SkillValidate, ToolInvoke
from operant.sdk.testing.server import ScriptedServer
from tests.journey.house import ended, say, system

SCRIPT: dict[str, Any] = {
    "read": [{"calls": [{"name": "read_skill", "arguments": {"name": "greet"}}]}, {"text": "Read."}],
    "write": [
        {
            "calls": [
                {
                    "name": "use_tool",
                    "arguments": {
                        "name": "manage_skill",
                        "arguments": {"name": "fresh", "text": "---\nname: fresh\ndescription: Fresh one.\n---\nGo.\n"},
                    },
                }
            ]
        },
        {"text": "Written."},
    ],
    "hello": [{"text": "Hello."}],
}
MORE: dict[str, object] = {"agents": {"operant": {"approval": {"*": "allow"}}}}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(SCRIPT)
    async with made.serving():
        yield made


@pytest.fixture
async def made(tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[System]:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "person")
    async with system(tmp_path / "home", server, MORE) as running:
        yield running


def put(root: Path, name: str, description: str = "Says hello. Use for greetings.", body: str = "Say hello.") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
    return folder


async def names(made: System) -> dict[str, str]:
    return {f"{one.source}/{one.name}": one.state for one in await made.kernel.call(OWNER, SkillList())}


def told(server: ScriptedServer) -> str:
    """Return what the model was told about skills in the last request."""
    tools = server.requests[-1].body.get("tools", [])
    found = [one["function"]["description"] for one in tools if one["function"]["name"] == "read_skill"]
    return found[0] if found else ""


async def invoke(made: System, tool: str, /, **arguments: Any) -> ToolResult:
    return await made.kernel.call(OWNER, ToolInvoke(name=tool, arguments=arguments))


def words(result: ToolResult) -> str:
    return "".join(part.text for part in result.parts if isinstance(part, Text))


async def test_a_new_folder_counts_at_the_next_message(made: System, server: ScriptedServer, tmp_path: Path) -> None:
    await say(made, "@hello")
    await ended(made)
    assert "greet" not in told(server) and "- summarize:" in told(server)
    folder = put(tmp_path / "home" / "skills", "greet", body="Say @hello twice.")
    (folder / "references").mkdir()
    (folder / "references" / "more.md").write_text("Even more.")
    await say(made, "@read it")
    events = await ended(made, 2)
    assert "- greet: Says hello." in told(server)
    result = next(event.body for event in events if event.type == "tool.ended")
    assert "Say @hello twice." in str(result) and "references/more.md" in str(result)
    assert "Say @hello twice." not in told(server)  # nothing of the body before it is asked for
    assert words(await invoke(made, "read_skill", name="greet", file="references/more.md")) == "Even more."
    for path in ("../../operant.yaml", "/etc/passwd", "../summarize/SKILL.md"):
        assert (await invoke(made, "read_skill", name="greet", file=path)).outcome == "error"


async def test_an_agent_writes_skills_and_every_version_stays(made: System, tmp_path: Path) -> None:
    await say(made, "@write one")
    await ended(made)
    assert (await names(made))["agent/fresh"] == "ready"
    text = "---\nname: fresh\ndescription: Fresher.\n---\nGo on.\n"
    assert "The version before it" in words(await invoke(made, "manage_skill", name="fresh", text=text))
    folder = tmp_path / "home" / "agents" / "operant" / "workspace" / "skills" / "fresh"
    assert len(list((folder / ".history").iterdir())) == 1
    for name, body in (("Bad Name", text), ("fresh", "no frontmatter"), ("../up", text), ("", text)):
        assert (await invoke(made, "manage_skill", name=name, text=body)).outcome == "error"


async def test_scripts_run_in_the_sandbox(made: System, tmp_path: Path) -> None:
    folder = put(tmp_path / "home" / "skills", "greet")
    (folder / "scripts").mkdir()
    secret = tmp_path / "home" / "operant.yaml"
    (folder / "scripts" / "go.sh").write_text(f'echo "hello $1"; cat {secret} 2>&1; exit 3\n')
    (folder / "scripts" / "go.py").write_text("import sys; print(sys.argv[1:])\n")
    result = await invoke(made, "run_skill", name="greet", script="go.sh", arguments=["you"])
    assert "hello you" in words(result) and "exit code 3" in words(result) and result.outcome == "error"
    assert "providers" not in words(result)
    assert "['a', 'b']" in words(
        await invoke(made, "run_skill", name="greet", script="scripts/go.py", arguments=["a", "b"])
    )
    for script in ("../SKILL.md", "none.sh", "/bin/sh"):
        assert (await invoke(made, "run_skill", name="greet", script=script)).outcome == "error"


async def test_the_nearest_wins_and_the_others_are_said_to_be_hidden(made: System, tmp_path: Path) -> None:
    put(tmp_path / "home" / "skills", "summarize", "Mine.")
    put(tmp_path / "home" / "agents" / "operant" / "workspace" / "skills", "summarize", "The agent's own.")
    put(tmp_path / "person" / ".agents" / "skills", "mine")
    found = await names(made)
    assert found["agent/summarize"] == "ready" and found["home/summarize"] == found["shipped/summarize"] == "hidden"
    assert found["person/mine"] == "ready"
    assert (await made.kernel.call(OWNER, SkillGet(skill="summarize"))).info.description == "The agent's own."


async def test_links_of_an_agent_lead_nowhere(made: System, tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere", "secret")
    skills = tmp_path / "home" / "agents" / "operant" / "workspace" / "skills"
    skills.mkdir()
    (skills / "secret").symlink_to(elsewhere)
    (skills / "half").mkdir()
    (skills / "half" / "SKILL.md").symlink_to(elsewhere / "SKILL.md")
    found = await names(made)
    assert "agent/secret" not in found and found.get("agent/half") in (None, "broken")


async def test_what_is_broken_or_lacks_something_is_said(made: System, tmp_path: Path) -> None:
    home = tmp_path / "home" / "skills"
    (home / "broken").mkdir()
    (home / "broken" / "SKILL.md").write_text("---\nname: [\n---\n")
    (home / "needy").mkdir()
    needy = "---\nname: needy\ndescription: D\nmetadata: {env: NO_SUCH_VARIABLE, bins: no-such-program}\n---\n"
    (home / "needy" / "SKILL.md").write_text(needy)
    listed = {one.name: one for one in await made.kernel.call(OWNER, SkillList())}
    assert listed["broken"].state == "broken" and listed["broken"].lacks
    assert listed["needy"].lacks == ("variable NO_SUCH_VARIABLE", "program no-such-program")


async def test_skills_come_go_and_are_reset(made: System, tmp_path: Path) -> None:
    source = put(tmp_path / "source", "greet")
    assert (await made.kernel.call(OWNER, SkillAdd(path=str(source)))).source == "home"
    with pytest.raises(Conflict):
        await made.kernel.call(OWNER, SkillAdd(path=str(source)))
    aside = Path(await made.kernel.call(OWNER, SkillRemove(skill="greet")))
    assert (aside / "SKILL.md").is_file()
    for name in ("greet", "../x", ".trash", "../../skills/summarize"):
        with pytest.raises(NotFound):
            await made.kernel.call(OWNER, SkillRemove(skill=name))
    (source / "link").symlink_to("/etc")
    with pytest.raises(Invalid, match="links"):
        await made.kernel.call(OWNER, SkillAdd(path=str(source)))
    put(tmp_path / "home" / "skills", "summarize", "Mine.")
    assert await made.kernel.call(OWNER, SkillReset()) == ("summarize",)
    assert (await made.kernel.call(OWNER, SkillGet(skill="summarize"))).info.source == "shipped"
    assert await made.kernel.call(OWNER, SkillValidate(path=str(put(tmp_path / "v", "fine")))) == ()


async def test_only_what_is_permitted_is_there(tmp_path: Path, server: ScriptedServer) -> None:
    only: dict[str, object] = {"agents": {"operant": {"permissions": {"skills": ["summ*"]}}}}
    async with system(tmp_path / "home", server, only) as made:
        await say(made, "@hello")
        await ended(made)
        assert "- summarize:" in told(server) and "skill-creator" not in told(server)
        assert (await invoke(made, "read_skill", name="skill-creator")).outcome == "error"


def test_many_skills_are_searched_instead_of_listed(tmp_path: Path, record_property: Any) -> None:
    for number in range(500):
        put(tmp_path / "skills", f"skill-{number}", f"Handles case {number} of {'tax' if number % 7 == 0 else 'law'}.")
    shelf = Shelf(tmp_path, SkillSettings(), lambda name: None)
    agent = Agent(name="a", permissions=Permissions())
    began = time.perf_counter()
    usable = shelf.usable(agent)
    first = time.perf_counter() - began
    began = time.perf_counter()
    shelf.usable(agent)
    again = time.perf_counter() - began
    record_property("seconds", (first, again))  # figures, not conditions
    assert len(usable) >= 500
    text = listing(usable, 50)
    assert "find one with `search`" in text and len(text) // 4 < 1_500
