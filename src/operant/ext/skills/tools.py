"""What agents do with skills: read one, run a script of one, write one.

The list of skills is the description of `read_skill`, so it is part of what stays the same from request to request, and
nothing of a skill but its name and what it is for is told before it is needed.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from operant.ext.skills.craft import Craft
from operant.ext.skills.format import FILE
from operant.ext.skills.settings import SkillSettings
from operant.ext.skills.shelf import Shelf, Skill
from operant.kit import proc
from operant.kit.beneath import Beneath, FileError
from operant.kit.text import plain
from operant.sdk import (
    SKILL_LOAD_BEFORE,
    Agent,
    Ask,
    CallContext,
    Command,
    FunctionTool,
    Host,
    Output,
    Refused,
    Reject,
    SkillInput,
    SkillOutput,
    Text,
    Tool,
    ToolResult,
    ToolSpec,
    Unavailable,
    failed,
    text_of,
    tool,
)

READ, RUN, MANAGE = "read_skill", "run_skill", "manage_skill"
_LINE = 240
"""Characters of one skill in the list."""
_MOST_CHARS = 6_000
"""Characters of the whole list, about 1,500 tokens."""
_FOUND = 20
_LARGEST = 256 * 1024
_RUN_S = 600.0
_INTERPRETERS = {".py": (sys.executable,), ".sh": ("bash",), ".js": ("node",), ".mjs": ("node",), ".pl": ("perl",)}
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1"}


class Shown:
    """A tool whose description is what holds at the moment."""

    def __init__(self, inner: FunctionTool, description: str) -> None:
        self._inner = inner
        spec = inner.spec
        self.spec = ToolSpec(
            name=spec.name,
            description=description,
            schema=spec.schema,
            effect=spec.effect,
            timeout_s=spec.timeout_s,
            deferred=spec.deferred,
        )

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check arguments."""
        return self._inner.check(arguments)

    async def run(self, call: CallContext, arguments: dict[str, Any], output: Output) -> ToolResult:
        """Run it."""
        return await self._inner.run(call, arguments, output)


class SkillTools:
    """The toolbox: an agent without skills is not told of any."""

    def __init__(self, host: Host, shelf: Shelf, settings: SkillSettings) -> None:
        self._host = host
        self._shelf = shelf
        self._settings = settings
        self._craft = Craft(host)
        self._known: dict[str, dict[str, Skill]] = {}
        self._read = self._reader()
        self._others: dict[str, Tool] = {RUN: self._runner(), MANAGE: self._manager()}

    def look(self, agent: Agent) -> None:
        """Look at the folders; done before a turn and after each tool, so that what is new counts at once."""
        self._known[agent.name] = self._shelf.usable(agent)

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, Tool]:
        """Return an agent's tools for skills."""
        known = self._known.get(agent.name)
        if known is None:
            self.look(agent)
            known = self._known[agent.name]
        reading = {READ: Shown(self._read, listing(known, self._settings.listed))} if known else {}
        return {**reading, **self._others}

    # ------------------------------------------------------------------ the three tools

    def _reader(self) -> FunctionTool:
        @tool(effect="read", timeout_s=30, name=READ)
        async def read_skill(
            call: CallContext,
            name: Annotated[str, "of the skill"] = "",
            file: Annotated[str, "a file of it; left out: its instructions"] = "",
            search: Annotated[str, "words, to find a skill by"] = "",
        ) -> ToolResult:
            """Read a skill."""
            told = await asyncio.to_thread(self._told, call.agent, name, file, search)
            if not name or told.outcome != "ok":
                return told
            return await self._loaded(call, name, file, text_of(told.parts))

        return read_skill

    def _runner(self) -> FunctionTool:
        @tool(effect="external", timeout_s=_RUN_S + 30, name=RUN, deferred=True)
        async def run_skill(
            name: Annotated[str, "of the skill"],
            script: Annotated[str, "a file below its scripts/"],
            call: CallContext,
            output: Output,
            arguments: Annotated[tuple[str, ...], "words for the script"] = (),
        ) -> ToolResult:
            """Run a script of a skill in the sandbox, in the workspace."""
            skill = self._shelf.usable(call.agent).get(name)
            if skill is None:
                return failed(self._unknown(call.agent, name))
            return await self._run(skill, script, arguments, call, output)

        return run_skill

    def _manager(self) -> FunctionTool:
        @tool(effect="idempotent", timeout_s=30, name=MANAGE, deferred=True)
        async def manage_skill(
            name: Annotated[str, "small letters, digits and hyphens"],
            text: Annotated[str, "the whole file; for SKILL.md with frontmatter: name, description"],
            call: CallContext,
            file: Annotated[str, "which file of the skill"] = FILE,
        ) -> ToolResult:
            """Write a skill of your own; what it replaces is kept under .history/."""
            return await asyncio.to_thread(self._craft.write, call.agent, name, file, text)

        return manage_skill

    # ------------------------------------------------------------------ inside

    def _told(self, agent: Agent, name: str, file: str, search: str) -> ToolResult:
        usable = self._shelf.usable(agent)
        if not name:
            found = matching(usable, search)[:_FOUND]
            lines = [summary_of(skill) for skill in found] or ["No skill has these words."]
            return ToolResult(parts=(Text(text="\n".join(lines)),))
        skill = usable.get(name)
        if skill is None:
            return failed(self._unknown(agent, name))
        try:
            return ToolResult(parts=(Text(text=words_of(skill, file)),))
        except FileError as error:
            return failed(str(error))

    async def _loaded(self, call: CallContext, name: str, file: str, text: str) -> ToolResult:
        try:
            return ToolResult(parts=(Text(text=await self.load(call, name, file, text)),))
        except Refused as error:
            return failed(error.line())

    async def load(self, call: CallContext, name: str, file: str, text: str) -> str:
        """Return what of a skill is read after `skill.load.before`. Raises `Refused`."""
        source = self._shelf.usable(call.agent)[name].info.source
        about = SkillInput(session=call.session, agent=call.agent, name=name, source=source, file=file)
        ruling = await self._host.judge(SKILL_LOAD_BEFORE, about, SkillOutput(text=text))
        if isinstance(ruling.verdict, Reject | Ask):
            why = ruling.verdict.reason if isinstance(ruling.verdict, Reject) else "Somebody would have to be asked."
            raise Refused(f"The skill {name} may not be read: {why}")
        return ruling.output.text

    def _unknown(self, agent: Agent, name: str) -> str:
        near = matching(self._shelf.usable(agent), name)[:5]
        said = f" Near it: {', '.join(one.info.name for one in near)}." if near else ""
        return f"There is no skill {name!r} for you.{said}"

    async def _run(
        self, skill: Skill, script: str, arguments: tuple[str, ...], call: CallContext, output: Output
    ) -> ToolResult:
        try:
            path = await asyncio.to_thread(self._craft.lend, skill, script, call.agent)
        except FileError as error:
            return failed(str(error))
        words = (*_INTERPRETERS.get(Path(script).suffix, ()), path, *arguments)
        command = Command(argv=words, cwd=call.agent.workspace, env=dict(_ENVIRONMENT), tool=RUN)
        limits = proc.Limits(memory_bytes=max(call.agent.limits.tool_output_chars * 4, 4096), spool_bytes=0)
        try:
            async with self._host.confined(call, command) as launch:
                finished = await proc.launch(
                    launch, timeout_s=_RUN_S, on_output=lambda text: output(plain(text)), limits=limits
                )
        except proc.CannotStart as error:
            return failed(str(error))
        except Unavailable as error:
            return failed(error.line())
        try:
            said = plain(finished.output.head).rstrip() or "(no output)"
        finally:
            finished.output.close()
        well = finished.code == 0 and not finished.timed_out
        ending = "" if well else f"\n[exit code {finished.code}]"
        return ToolResult(parts=(Text(text=said + ending),), outcome="ok" if well else "error")


def listing(skills: Mapping[str, Skill], most: int) -> str:
    """Say which skills there are, in so few words that they can always be told."""
    head = "Read a skill: instructions that somebody wrote for a kind of task. Do it before you begin such a task."
    lines = [summary_of(skill) for skill in skills.values()]
    if len(lines) > most or sum(map(len, lines)) > _MOST_CHARS:
        return f"{head}\nThere are {len(lines)} skills: find one with `search`, then read it by its `name`."
    return "\n".join([head, "There are:", *lines])


def matching(skills: Mapping[str, Skill], words: str) -> list[Skill]:
    """Return skills that have the words, those with most of them first."""
    wanted = set(re.findall(r"\w+", words.lower()))
    if not wanted:
        return list(skills.values())

    def score(skill: Skill) -> int:
        text = f"{skill.info.name} {skill.info.name} {skill.info.description}".lower()
        return sum(text.count(word) for word in wanted)

    return sorted((skill for skill in skills.values() if score(skill)), key=lambda one: (-score(one), one.info.name))


def summary_of(skill: Skill) -> str:
    """Return a skill in one line."""
    info = skill.info
    lacks = f" [lacks {', '.join(info.lacks)}]" if info.lacks else ""
    words = " ".join(info.description.split())
    return f"- {info.name}: {words[:_LINE] + '…' if len(words) > _LINE else words}{lacks}"


def words_of(skill: Skill, file: str) -> str:
    """Return the instructions, and which files there are beside them; or one of those. Raises `FileError`."""
    with Beneath(skill.folder) as files:
        if file and file != FILE:
            return files.read_bytes(file, _LARGEST).decode("utf-8", "replace")
        others = [found.path for found in files.walk(".", frozenset((".history",))) if found.path != FILE]
    lacks = [f"It lacks: {', '.join(skill.info.lacks)}."] if skill.info.lacks else []
    beside = [f"Files beside it, read with `file`: {', '.join(sorted(others)[:100])}"] if others else []
    notes = "\n".join(f"[{note}]" for note in (*lacks, *beside))
    return f"{skill.text.body.strip()}\n{notes}".strip()
