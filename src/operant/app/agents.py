"""The agents of a home as their files stand now: an edit counts from the next turn."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from operant.app.bindings import Bindings
from operant.app.config import AgentSettings, Config, PermissionSettings, overlay
from operant.app.current import Current
from operant.app.home import Home
from operant.app.lineage import Lineage
from operant.app.plain import Print, fingerprint, read_plain
from operant.app.profiles import bounded, expand
from operant.kernel.errors import Conflict, Invalid, NotFound, Unavailable
from operant.kernel.ports import Clock
from operant.kernel.records import Address, Agent, Chosen, Limits, Permissions, Record
from operant.kit.frontmatter import Matter, read_matter
from operant.kit.yaml import YamlError

PROMPT_FILES = ("SOUL.md", "RULES.md", "USER.md", "AGENTS.md")
"""Files of the workspace that are part of the prompt, in this order."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
FRESH_S = 0.02
"""For how long files are not looked at again; a turn asks several times in a row."""

_log = logging.getLogger("operant.agents")


class Problem(Record):
    """A file that is not valid; the version before it stays in force."""

    where: str
    sentence: str


class _Known:
    """One agent as it was last read."""

    def __init__(self) -> None:
        self.agent: Agent | None = None
        self.prints: tuple[Print, ...] = ()
        self.looked = float("-inf")
        self.problem: Problem | None = None


class AgentFiles:
    """Read agents from their files, again whenever one of them has changed."""

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        find: Callable[[str], str | None],
        read: Callable[[], Config] | None = None,
    ) -> None:
        self._home = home
        self._clock = clock
        self._find = find
        self._known: dict[str, _Known] = {}
        self._current = Current(home.config, config, read or (lambda: config))
        self._bindings = Bindings(lambda: self._config.bindings)
        self._lineage = Lineage(home.agents, home.preamble, self.get, find)

    def get(self, name: str) -> Agent:
        """Return an agent (empty name: the default one) or a descendant of one. Raises `NotFound`."""
        name = name or self._config.defaults.agent
        if "/" in name:
            return self._lineage.get(name)
        known = self._known.get(name)
        if known is None or known.agent is None or self._clock.monotonic() - known.looked > FRESH_S:
            known = self._look(name)
        if known is None or known.agent is None:
            raise NotFound(f"There is no agent {name!r}.", "See: operant agent list.")
        return known.agent

    def list(self) -> Sequence[Agent]:
        """Return all agents by name."""
        names = {path.parent.name for path in self._home.agents.glob("*/AGENT.md")} | set(self._config.agents)
        names.add(self._config.defaults.agent)
        return tuple(self.get(name) for name in sorted(names) if NAME.fullmatch(name))

    def which(self, address: Address, user: str) -> Chosen:
        """Return who answers a message that names no agent."""
        return self._bindings.which(address, user, self._config.defaults.agent)

    def problems(self) -> Sequence[Problem]:
        """Return what is wrong with files now."""
        self.list()
        found = [known.problem for known in self._known.values() if known.problem]
        helpers = [
            Problem(where=at, sentence=words) for name in self._known for at, words in self._lineage.problems(name)
        ]
        settings = self._current.problem
        return (*found, *helpers, *([Problem(where="settings", sentence=settings)] if settings else []))

    def late(self) -> str:
        """Say which settings have changed and count only from the next start on; an empty text for none."""
        return self._current.late()

    def check(self, name: str, text: str) -> None:
        """Raise `Invalid` for an AGENT.md that would not be valid."""
        try:
            matter = read_matter(text)
        except YamlError as error:
            raise Invalid(f"AGENT.md:{error.line}: {error.sentence}") from error
        self._agent(name, matter, ["", text])

    def changed(self, name: str) -> None:
        """Look at an agent's files again the next time, however fresh what is known of them is."""
        if name in self._known:
            self._known[name].looked = float("-inf")

    def _look(self, name: str) -> _Known | None:
        """Stat the agent's files and read them when one is not as it was."""
        if not NAME.fullmatch(name) or not self._exists(name):
            self._known.pop(name, None)
            return None
        known = self._known.setdefault(name, _Known())
        known.looked = self._clock.monotonic()
        paths = self._paths(name)
        if known.agent is None:
            self._furnish(name)
        prints = tuple(map(fingerprint, (*paths, self._home.config)))
        if known.agent is None or prints != known.prints:
            known.prints = prints
            self._read(name, paths, known)
        helpers = self._lineage.helpers(name)
        if known.agent is not None and known.agent.helpers != helpers:
            known.agent = msgspec.structs.replace(known.agent, helpers=helpers)
        return known

    @property
    def _config(self) -> Config:
        return self._current.now()

    def _furnish(self, name: str) -> None:
        try:
            self._home.make_workspace(name)
        except OSError as error:
            _log.warning("the workspace of agent %s cannot be made: %s", name, error.strerror)

    def _exists(self, name: str) -> bool:
        if name in self._config.agents or name == self._config.defaults.agent:
            return True
        return (self._home.agents / name / "AGENT.md").is_file()

    def _paths(self, name: str) -> tuple[Path, ...]:
        directory = self._home.agents / name
        return (self._home.preamble, directory / "AGENT.md", *(directory / "workspace" / file for file in PROMPT_FILES))

    def _read(self, name: str, paths: Sequence[Path], known: _Known) -> None:
        try:
            texts = [read_plain(path, follow=place < 2) for place, path in enumerate(paths)]
            known.agent = self._agent(name, read_matter(texts[1]), texts)
            known.problem = None
        except (YamlError, Invalid) as error:
            sentence = (
                f"{paths[1].name}:{error.line}: {error.sentence}" if isinstance(error, YamlError) else error.sentence
            )
            known.problem = Problem(where=f"agents/{name}", sentence=sentence)
            if known.agent is None:
                known.agent = self._without_file(name)
            _log.warning("agent %s keeps its last valid version: %s", name, sentence)

    def _agent(self, name: str, matter: Matter, texts: Sequence[str]) -> Agent:
        try:
            settings = overlay(self._config.agent(name), matter.settings, self._find)
        except Invalid as error:
            lines = (f"AGENT.md:{line}" for line in error.sentence.splitlines())
            raise Invalid("\n".join(lines)) from error
        pieces = (texts[0], matter.body, *texts[2:])
        prompt = "\n\n".join(piece.strip() for piece in pieces if piece.strip())
        return self._made(name, settings, prompt)

    def _permissions(self, chosen: PermissionSettings) -> Permissions:
        """Return what an agent may use: its own rules, within its profile, within the boundary of all."""
        defaults = self._config.defaults
        own = Permissions(tools=chosen.tools, deny=chosen.deny, skills=chosen.skills, extensions=chosen.extensions)
        boundary = Permissions(**msgspec.structs.asdict(defaults.boundary))
        return bounded(expand(own, chosen.profile, defaults.profiles), boundary)

    def _without_file(self, name: str) -> Agent:
        """Stand in for an agent whose file was never valid: it may talk, and use nothing that the file may forbid."""
        agent = self._made(name, self._config.agent(name), "")
        return msgspec.structs.replace(agent, permissions=Permissions(tools=(), skills=()))

    def _made(self, name: str, settings: AgentSettings, prompt: str) -> Agent:
        return Agent(
            name=name,
            prompt=prompt,
            models=settings.models,
            workspace=str(self._home.agents / name / "workspace"),
            permissions=self._permissions(settings.permissions),
            approval=settings.approval,
            limits=Limits(max_steps=settings.max_steps, **msgspec.structs.asdict(settings.limits)),
            arrival=settings.arrival,
            context_strategy=settings.context_strategy,
            context_ratio=settings.context_ratio,
            max_output_tokens=settings.max_output_tokens,
            timezone=settings.timezone,
            sandbox=settings.sandbox,
            network=_network(settings.network),
            effort=settings.effort,
            description=settings.description,
        )


def add_agent(home: Home, name: str, *, description: str = "", models: Sequence[str] = ()) -> None:
    """Make an agent's files. Raises `Invalid` for a name that cannot be one, `Conflict` when it is taken."""
    if not NAME.fullmatch(name):
        raise Invalid(f"{name!r} cannot be an agent's name.", "Use small letters, digits, - and _.")
    if (home.agents / name / "AGENT.md").exists():
        raise Conflict(f"There is already an agent {name}.")
    settings = {"description": description, "models": list(models)}
    given = {key: value for key, value in settings.items() if value}
    text = ""
    if given:
        from operant.kit.yaml import write_yaml

        text = f"---\n{write_yaml(given)}---\nYour name is {name}.\n"
    with _told(home):
        home.add_agent(name, text)


def remove_agent(home: Home, name: str, now: int) -> Path:
    """Put an agent's files aside and return where they are now. Raises `NotFound`."""
    directory = home.agents / name
    if not NAME.fullmatch(name) or not directory.is_dir():
        raise NotFound(f"There is no agent {name!r}.", "See: operant agent list.")
    trash = home.agents / ".trash"
    with _told(home):
        trash.mkdir(mode=0o700, exist_ok=True)
        return directory.rename(trash / f"{name}-{now}")


@contextmanager
def _told(home: Home) -> Generator[None]:
    """Say in words what the disk did not let us do."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{home.agents} cannot be changed: {error}.") from error


def _network(chosen: Literal["none", "full"] | tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(chosen, str):
        return ("*",) if chosen == "full" else ()
    return chosen
