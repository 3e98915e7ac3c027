"""Syscalls about what lies around the kernel: the files of agents, the log, and how everything is."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from operant.app.agents import NAME, PROMPT_FILES, AgentFiles, add_agent, remove_agent
from operant.app.home import PRIVATE_FILE, Home
from operant.app.plain import read_plain
from operant.kernel.errors import Conflict, Denied, Invalid, NotFound, OperantError, Unavailable
from operant.kernel.kernel import Kernel
from operant.kernel.records import OWNER, Agent, Principal
from operant.kernel.syscalls import (
    AgentCreate,
    AgentFile,
    AgentRemove,
    AgentUpdate,
    Check,
    KernelExamine,
    LogLine,
    LogTail,
)
from operant.kernel.syscalls import AgentFiles as FilesOf
from operant.kit.files import write_private
from operant.kit.frontmatter import read_matter
from operant.kit.yaml import YamlError
from operant.sdk.local import LocalClient

SETTINGS = "AGENT.md"
FILES = (SETTINGS, *PROMPT_FILES)
GUARDED = ("sandbox", "network", "permissions", "approval", "limits")
"""Settings that say what an agent may do: a person edits the file for them, no call does."""
_MOST_LINES = 2_000


class Desk:
    """Carry out the calls that are about files of the home."""

    def __init__(self, kernel: Kernel, home: Home, agents: AgentFiles, env: Mapping[str, str]) -> None:
        self._kernel = kernel
        self._home = home
        self._agents = agents
        self._env = env

    def register(self) -> None:
        """Put the calls into the kernel's table."""
        add = self._kernel.syscalls.register
        add(FilesOf, self.files)
        add(AgentUpdate, self.update)
        add(AgentCreate, self.create)
        add(AgentRemove, self.remove)
        add(LogTail, self.tail)
        add(KernelExamine, self.examine)

    async def files(self, who: Principal, call: FilesOf) -> tuple[AgentFile, ...]:
        """Return the files of an agent."""
        agent = self._agents.get(_own(call.agent))
        return tuple(_read(self._path(agent.name, name), name) for name in FILES)

    async def update(self, who: Principal, call: AgentUpdate) -> AgentFile:
        """Write a file of an agent, unless it says what the agent may do."""
        agent = self._agents.get(_own(call.agent))
        if call.name not in (SETTINGS, *PROMPT_FILES):
            raise NotFound(
                f"An agent has no file {call.name!r}.", f"There are: {', '.join((SETTINGS, *PROMPT_FILES))}."
            )
        path = self._path(agent.name, call.name)
        before = _read(path, call.name)
        if call.digest != before.digest:
            raise Conflict(f"{call.name} has changed since it was read.", "Read it again, then write.")
        if call.name == SETTINGS:
            self._check_settings(agent.name, before.text, call.text)
        try:
            write_private(path, call.text.encode(), PRIVATE_FILE)
        except OSError as error:
            raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error
        self._agents.changed(agent.name)
        return _read(path, call.name)

    async def create(self, who: Principal, call: AgentCreate) -> Agent:
        """Make an agent."""
        add_agent(self._home, call.agent, description=call.description, models=call.models)
        return self._agents.get(call.agent)

    async def remove(self, who: Principal, call: AgentRemove) -> str:
        """Put an agent's files aside."""
        if call.agent == self._agents.get("").name:
            raise Conflict(f"{call.agent} answers when no agent is named.", "Name another one in `defaults.agent`.")
        return str(remove_agent(self._home, call.agent, self._kernel.clock.now()))

    async def tail(self, who: Principal, call: LogTail) -> tuple[LogLine, ...]:
        """Return the end of the log."""
        try:
            with self._home.log.open(encoding="utf-8", errors="replace") as file:
                lines = deque(file, maxlen=min(max(call.lines, 0), _MOST_LINES))
        except FileNotFoundError:
            return ()
        return tuple(map(_line, lines))

    async def examine(self, who: Principal, call: KernelExamine) -> tuple[Check, ...]:
        """Look at everything."""
        from operant.app.examination import examine, look  # seldom asked for, and every command loads this file

        client = LocalClient(lambda: self._kernel, OWNER)

        async def system() -> list[Check]:
            return await look(client, full=call.full)

        return tuple(await examine(self._home, self._env, system))

    def _path(self, agent: str, name: str) -> Path:
        if not NAME.fullmatch(agent):
            raise NotFound(f"There is no agent {agent!r}.", "See: operant agent list.")
        directory = self._home.agents / agent
        return directory / name if name == SETTINGS else directory / "workspace" / name

    def _check_settings(self, name: str, before: str, after: str) -> None:
        """Raise `Denied` when what the agent may do would change, `Invalid` for what cannot be read."""
        was, now = _settings(before, lenient=True), _settings(after)
        for key in GUARDED:
            if was.get(key) != now.get(key):
                raise Denied(
                    f"`{key}` of {name} says what the agent may do, and no call may change it.",
                    f"Edit {self._path(name, SETTINGS)} on the machine.",
                )
        self._agents.check(name, after)


def _own(name: str) -> str:
    """Refuse a descendant: it has no files, but for the one below `helpers/` that calls do not change."""
    if "/" in name:
        raise Invalid(f"{name} has no files of its own.", "Name the agent that it is made of.")
    return name


def _settings(text: str, *, lenient: bool = False) -> dict[str, Any]:
    try:
        data = read_matter(text).settings.data
    except YamlError as error:
        if lenient:
            return {}
        raise Invalid(f"{SETTINGS}:{error.line}: {error.sentence}.") from error
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _read(path: Path, name: str) -> AgentFile:
    try:
        text = read_plain(path, follow=name == SETTINGS)
    except OperantError as error:
        raise Unavailable(error.sentence, "Mend it on the machine.") from error
    there = path.exists()
    return AgentFile(name=name, text=text, digest=hashlib.sha256(text.encode()).hexdigest() if there else "")


def _line(line: str) -> LogLine:
    """Read one line; one that is broken is shown as it is."""
    try:
        return msgspec.convert(json.loads(line), LogLine)
    except (ValueError, msgspec.ValidationError):
        return LogLine(message=line.rstrip("\n"))


def open_desk(kernel: Kernel, home: Home, agents: AgentFiles, env: Mapping[str, str]) -> None:
    """Let the calls about files of the home be made."""
    Desk(kernel, home, agents, env).register()
