"""Agents that are made of others: `operant/critic` is the helper `critic` within all that `operant` may do.

The name says the whole line of descent, and the session keeps the name: what a sub-agent may do is worked out from
the files anew on every turn, also after a restart, and never becomes more than what each of its ancestors may do.
`operant/critic(read_file,search_*)` is narrowed further, to those tools. A helper is the file
`agents/<agent>/helpers/<name>.md`; `worker` needs none: it is the agent itself.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from operant.app.fit import Fitting, make
from operant.app.patterns import joined, narrow
from operant.app.plain import Print, fingerprint, read_plain
from operant.kernel.errors import Invalid, NotFound
from operant.kernel.records import Agent, Effort, Record
from operant.kit.frontmatter import read_matter
from operant.kit.yaml import YamlError

WORKER = "worker"
DEEPEST = 8
"""Generations that a name may have; how deep agents may call agents is a setting, and less."""

_STEP = re.compile(r"(?P<helper>[a-z0-9][a-z0-9_-]{0,63})(?:\((?P<tools>[\w*-]{1,64}(?:,[\w*-]{1,64}){0,63})\))?")

_log = logging.getLogger("operant.agents")


class HelperSettings(Record):
    """The head of a helper's file; what it does not say is as its agent has it."""

    description: Annotated[str, Meta(description="One line: what to give it to do.")] = ""
    tools: Annotated[tuple[str, ...], Meta(description="Tools that it may use, of those that its agent may use.")] = (
        "*",
    )
    models: Annotated[tuple[str, ...], Meta(description="Models as `provider/model`.")] = ()
    agent: Annotated[str, Meta(description="Another agent whose prompt and models it has.")] = ""
    max_steps: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="Model calls that it may make.")] = None
    effort: Annotated[Effort | None, Meta(description="How long models that reason think.")] = None

    def __post_init__(self) -> None:
        """Refuse a descendant: it could be its own ancestor."""
        if "/" in self.agent:
            raise ValueError(f"{self.agent!r} is no agent of its own")


class Helper(Record):
    """A helper as its file was last valid."""

    settings: HelperSettings
    prompt: str


class _Read(Record):
    """A file as it was last read; `sentence` says what is wrong with it now."""

    print: Print
    helper: Helper | None
    sentence: str = ""


class Lineage:
    """Read helpers, and make agents of their names."""

    def __init__(self, agents: Path, preamble: Path, get: Callable[[str], Agent], find: Callable[[str], str | None]):
        self._agents = agents
        self._preamble = preamble
        self._get = get
        self._find = find
        self._read: dict[Path, _Read] = {}

    def get(self, name: str) -> Agent:
        """Return a descendant. Raises `NotFound` where one of its line is not there."""
        root, *steps = name.split("/")
        agent = self._get(root)
        if len(steps) > DEEPEST:
            raise NotFound(f"{name!r} has more than {DEEPEST} generations.")
        for step in steps:
            agent = self._step(agent, root, step)
        return agent

    def helpers(self, root: str) -> dict[str, str]:
        """Return an agent's helpers by name, with what each is for."""
        found = {path.stem: self._helper(path) for path in self._files(root)}
        return {name: helper.settings.description for name, helper in sorted(found.items()) if helper is not None}

    def problems(self, root: str) -> list[tuple[str, str]]:
        """Return the files that are not valid now, and why."""
        self.helpers(root)
        read = [(path, self._read[path]) for path in self._files(root) if path in self._read]
        return [(f"agents/{root}/helpers", f"{path.name}:{one.sentence}") for path, one in read if one.sentence]

    def _step(self, parent: Agent, root: str, step: str) -> Agent:
        match = _STEP.fullmatch(step)
        if match is None:
            raise NotFound(f"{step!r} cannot be the name of a helper.", "Use small letters, digits, - and _.")
        path = self._folder(root) / f"{match['helper']}.md"
        helper = self._helper(path)
        if helper is None and path.exists():
            raise NotFound(f"The file of the helper {match['helper']!r} was never valid.", "`operant doctor` says why.")
        if helper is None and match["helper"] != WORKER:
            known = ", ".join((*self.helpers(root), WORKER))
            raise NotFound(f"{root} has no helper {match['helper']!r}.", f"There are: {known}.")
        narrowed = tuple(match["tools"].split(",")) if match["tools"] else ("*",)
        return self._descend(parent, f"{parent.name}/{step}", helper, narrowed)

    def _descend(self, parent: Agent, name: str, helper: Helper | None, narrowed: tuple[str, ...]) -> Agent:
        """Make a child: what it may do is its parent's, narrowed; who it is may be its own."""
        bounds = narrow(parent.permissions, tools=narrowed)
        if helper is None:
            return msgspec.structs.replace(parent, name=name, permissions=bounds)
        settings = helper.settings
        bounds = narrow(bounds, tools=settings.tools)
        model = parent
        if settings.agent:
            model = self._get(settings.agent)
            bounds = narrow(bounds, tools=model.permissions.tools, skills=model.permissions.skills)
            bounds = msgspec.structs.replace(bounds, deny=joined(bounds.deny, model.permissions.deny))
        base = model.prompt if settings.agent else read_plain(self._preamble, follow=True)
        return msgspec.structs.replace(
            parent,
            name=name,
            prompt="\n\n".join(piece.strip() for piece in (base, helper.prompt) if piece.strip()),
            models=settings.models or model.models,
            effort=settings.effort or model.effort,
            description=settings.description,
            permissions=bounds,
            limits=msgspec.structs.replace(parent.limits, max_steps=settings.max_steps or parent.limits.max_steps),
        )

    def _folder(self, root: str) -> Path:
        return self._agents / root / "helpers"

    def _files(self, root: str) -> list[Path]:
        try:
            return sorted(path for path in self._folder(root).glob("*.md") if _STEP.fullmatch(path.stem))
        except OSError:
            return []

    def _helper(self, path: Path) -> Helper | None:
        """Return a helper as its file is now, or as it was last valid; None where there is none."""
        now = fingerprint(path)
        if now is None:
            self._read.pop(path, None)
            return None
        before = self._read.get(path)
        if before is not None and before.print == now:
            return before.helper
        try:
            read = _Read(print=now, helper=self._parsed(read_plain(path, follow=True)))
        except (YamlError, Invalid) as error:
            words = f"{error.line}: {error.sentence}" if isinstance(error, YamlError) else f" {error.sentence}"
            _log.warning("helper %s keeps its last valid version: %s", path.stem, words)
            read = _Read(print=now, helper=before.helper if before else None, sentence=words)
        self._read[path] = read
        return read.helper

    def _parsed(self, text: str) -> Helper:
        matter = read_matter(text)
        fitting = Fitting(self._find, {})
        fitted = fitting.fit(matter.settings.data or {}, HelperSettings, ())
        if fitting.misfits:
            lines = (f"{matter.settings.line(one.path)}: {one.line()}" for one in fitting.misfits)
            raise Invalid("; ".join(lines))
        try:
            return Helper(settings=make(fitted, HelperSettings), prompt=matter.body)
        except msgspec.ValidationError as error:
            raise Invalid(str(error)) from error
