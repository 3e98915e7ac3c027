"""Extensions below `extensions/` in a home: found, started, isolated when they break."""

from __future__ import annotations

import asyncio
from pathlib import Path

from operant.app.build import Options, running
from operant.app.home import Home
from operant.app.neighbours import find_all
from operant.kernel.records import OWNER, Text
from operant.kernel.syscalls import KernelStatus, ToolInvoke, ToolList

ONE = '''"""Count words."""
from contextlib import asynccontextmanager
from operant.sdk import Extension, Reject, Record, TOOL_BEFORE, tool

extension = Extension(name="words", setup=":setup", settings=":Settings")


class Settings(Record):
    most: int = 3


@tool(effect="read")
async def count_words(text: str) -> str:
    """Count words."""
    return str(len(text.split()))


@asynccontextmanager
async def setup(host, settings):
    async def guard(input, output):
        if len(output.arguments.get("text", "").split()) > settings.most:
            return Reject(reason="too many words")

    host.tool(count_words)
    host.hook(TOOL_BEFORE, guard, phase="validate")
    yield
'''


def put(home: Path, name: str, text: str) -> None:
    path = home / "extensions" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_a_file_is_an_extension_with_tools_hooks_and_settings(tmp_path: Path) -> None:
    home = tmp_path / "home"
    put(home, "words.py", ONE)
    put(home, "folder/__init__.py", ONE.replace('"words"', '"more"').replace('":setup"', '".inner:setup"'))
    put(home, "folder/inner.py", ONE.replace("count_words", "count_more"))
    put(home, "broken.py", "import no_such_module")
    put(home, "odd.py", "extension = 7")
    put(home, "guard.py", ONE.replace('name="words"', 'name="guard"'))
    (home / "operant.yaml").write_text("words: {most: 2}\n")
    async with running(Home(home), Options(env={"PATH": "/usr/bin:/bin"}, overrides={}, work=False)) as made:
        status = await made.kernel.call(OWNER, KernelStatus())
        assert {"words", "more", "guard"} <= set(status.extensions)
        said = "\n".join(status.problems)
        assert "broken: ModuleNotFoundError" in said and "odd" in said and "already an extension guard" in said
        assert {"count_words", "count_more"} <= {
            spec.name for spec in await made.kernel.call(OWNER, ToolList(agent="operant"))
        }
        result = await made.kernel.call(OWNER, ToolInvoke(name="count_words", arguments={"text": "a b"}))
        assert isinstance(result.parts[0], Text) and result.parts[0].text == "2"
        refused = await made.kernel.call(OWNER, ToolInvoke(name="count_words", arguments={"text": "a b c"}))
        assert refused.outcome == "denied"
    (home / "operant.yaml").write_text("extensions: {disabled: [words, more]}\n")
    async with running(Home(home), Options(env={"PATH": "/usr/bin:/bin"}, overrides={}, work=False)) as made:
        assert "words" not in (await made.kernel.call(OWNER, KernelStatus())).extensions


async def test_two_homes_have_their_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        put(tmp_path / name, "words.py", ONE.replace('"words"', f'"words-{name}"'))
    assert any(one.name == "words-one" for one in find_all(tmp_path / "one").extensions)
    assert not any(one.name == "words-one" for one in find_all(tmp_path / "two").extensions)


def test_a_home_without_any_has_none(tmp_path: Path) -> None:
    assert find_all(tmp_path) == find_all(tmp_path / "nowhere")


async def test_an_agent_may_do_without_an_extension_and_that_counts_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    put(home, "words.py", ONE)
    (home / "operant.yaml").write_text("words: {most: 2}\n")
    async with running(Home(home), Options(env={"PATH": "/usr/bin:/bin"}, overrides={}, work=False)) as made:

        async def offered() -> set[str]:
            return {spec.name for spec in await made.kernel.call(OWNER, ToolList(agent="operant"))}

        async def listing() -> str:
            arguments = {"path": ".", "text": "a b c"}
            return (await made.kernel.call(OWNER, ToolInvoke(name="list_files", arguments=arguments))).outcome

        assert "count_words" in await offered()
        file = home / "agents" / "operant" / "AGENT.md"
        file.write_text("---\npermissions: {extensions: []}\n---\nYou help.\n")
        async with asyncio.timeout(10):  # files are looked at again after a moment
            while "count_words" in await offered():
                await asyncio.sleep(0)
        hooks = [one for one in made.kernel.hooks.__dict__["_at"]["tool.before"] if one.author == "words"]
        assert hooks, "its guard stays where it is, and is not asked for this agent"
        assert await listing() != "denied"
        file.write_text("---\npermissions: {extensions: [wor*]}\n---\nYou help.\n")
        async with asyncio.timeout(10):
            while "count_words" not in await offered():
                await asyncio.sleep(0)
        refused = await made.kernel.call(OWNER, ToolInvoke(name="count_words", arguments={"text": "a b c"}))
        assert refused.outcome == "denied"


async def test_an_extension_of_others_cannot_take_the_name_of_a_tool_of_ours(tmp_path: Path) -> None:
    home = tmp_path / "home"
    put(home, "words.py", ONE.replace("count_words", "read_file"))
    async with running(Home(home), Options(env={"PATH": "/usr/bin:/bin"}, overrides={}, work=False)) as made:
        said = "\n".join((await made.kernel.call(OWNER, KernelStatus())).problems)
    assert "words: There is already a tool read_file" in said
