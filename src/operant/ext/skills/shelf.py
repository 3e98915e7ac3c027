"""All skills of an agent: where they are found, which one wins, what each one lacks."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from operant.ext.skills.format import FILE, Text, Unreadable, decoded, read_skill
from operant.ext.skills.settings import SkillSettings
from operant.kit.beneath import Beneath, FileError
from operant.sdk import Agent, Record, SkillInfo

SHIPPED = Path(__file__).parent / "shipped"
REMOVED = ".removed"
AUDIENCE = "operant.audience"
DEEPEST = 4
MOST_FOLDERS = 2_000
MOST_BYTES = 256 * 1024

_log = logging.getLogger("operant.skills")


class Root(NamedTuple):
    """A folder of skills, and what it is called."""

    source: str
    path: Path


class Skill(Record):
    """One skill as it was last read."""

    info: SkillInfo
    text: Text
    folder: str


class _Read(NamedTuple):
    """One file as it was read: its state, and what came of it."""

    state: tuple[int, int, int]
    skill: Skill | None
    reason: str


class Shelf:
    """Find skills; a file is read again when it is not as it was."""

    def __init__(self, home: Path, settings: SkillSettings, variable: Callable[[str], str | None]) -> None:
        self._home = home
        self._settings = settings
        self._variable = variable
        self._read: dict[Path, _Read] = {}

    def roots(self, agent: Agent) -> list[Root]:
        """Return where an agent's skills are, those that win first."""
        own = [Root("agent", Path(agent.workspace) / "skills")] if agent.workspace else []
        projects = [
            Root("project", Path(project).expanduser() / place / "skills")
            for project in self._settings.projects
            for place in (".agents", ".claude")
        ]
        folders = [Root("folder", Path(path).expanduser()) for path in self._settings.folders]
        person = [Root("person", Path.home() / ".agents" / "skills")]
        return [*own, *projects, Root("home", self._home / "skills"), *folders, *person, Root("shipped", SHIPPED)]

    def all(self, agent: Agent) -> tuple[SkillInfo, ...]:
        """List every skill that was found, also those that another one hides and those that cannot be read."""
        taken: dict[str, str] = {}
        listed: list[SkillInfo] = []
        for info in self._found(agent):
            if info.state == "broken":
                listed.append(info)
                continue
            if info.name in taken:
                listed.append(msgspec.structs.replace(info, state="hidden", lacks=(f"hidden by {taken[info.name]}",)))
                continue
            taken[info.name] = info.path
            listed.append(info)
        return tuple(sorted(listed, key=lambda one: (one.name, one.state == "hidden")))

    def removed(self, name: str) -> Path:
        """Return the mark of a skill that comes with Operant and was removed; it is there when it was."""
        return self._home / "skills" / REMOVED / name

    def usable(self, agent: Agent) -> dict[str, Skill]:
        """Return by name the skills that an agent may use; those that stand for a part of Operant are not for it."""
        known = self.known(agent)
        return {name: skill for name, skill in known.items() if skill.text.metadata.get(AUDIENCE) != "owner"}

    def known(self, agent: Agent) -> dict[str, Skill]:
        """Return by name the skills that count for an agent."""
        rules = agent.permissions.skills
        found: dict[str, Skill] = {}
        for root in self.roots(agent):
            for read in self._below(root):
                skill = read.skill
                if skill and skill.info.name not in found and _permitted(skill.info.name, rules):
                    found[skill.info.name] = skill
        return dict(sorted(found.items()))

    def _found(self, agent: Agent) -> Iterator[SkillInfo]:
        for root in self.roots(agent):
            for read in self._below(root):
                if read.skill is not None:
                    yield read.skill.info

    def _below(self, root: Root) -> Iterator[_Read]:
        """Yield the skills of one folder; what cannot be read is a skill that is broken."""
        # What an agent or a project brings must not lead to what the person has elsewhere.
        for folder in folders(root.path, follow=root.source not in ("agent", "project")):
            if root.source != "shipped" or not self.removed(folder.name).exists():
                yield self._one(root, folder)

    def _one(self, root: Root, folder: Path) -> _Read:
        file = folder / FILE
        try:
            info = file.stat()
        except OSError:
            return _Read((0, 0, 0), None, "")
        state = (info.st_mtime_ns, info.st_size, info.st_ino)
        before = self._read.get(file)
        if before is None or before.state != state:
            before = self._read[file] = _Read(state, self._make(root, folder, file), "")
        skill = before.skill
        if skill is None or skill.info.state == "broken":
            return before
        return before._replace(skill=self._now(skill))

    def _make(self, root: Root, folder: Path, file: Path) -> Skill:
        path = str(folder)
        try:
            with Beneath(path) as files:
                data = files.read_bytes(file.name, MOST_BYTES)
            text = read_skill(decoded(data), folder.name)
        except (Unreadable, FileError, OSError) as error:
            _log.warning("the skill %s cannot be read: %s", path, error)
            broken = SkillInfo(name=folder.name, source=root.source, path=path, state="broken", lacks=(str(error),))
            return Skill(info=broken, text=Text(name=folder.name, description="", body=""), folder=path)
        for warning in text.warnings:
            _log.info("the skill %s is used, though %s", path, warning)
        made = SkillInfo(
            name=text.name,
            description=text.description,
            source=root.source,
            path=path,
            warnings=text.warnings,
            digest=hashlib.sha256(data).hexdigest(),
            metadata=text.metadata,
        )
        return Skill(info=made, text=text, folder=path)

    def _now(self, skill: Skill) -> Skill:
        """Say what a skill lacks at this moment: variables and programs come and go."""
        lacks = [f"variable {name}" for name in skill.text.env if not self._variable(name)]
        lacks += [f"program {name}" for name in skill.text.programs if not shutil.which(name)]
        state = "missing" if lacks else "ready"
        info = msgspec.structs.replace(skill.info, state=state, lacks=tuple(lacks))
        return Skill(info=info, text=skill.text, folder=skill.folder)


def folders(root: Path, *, follow: bool = False) -> Iterator[Path]:
    """Yield the folders below a root that hold a SKILL.md, by name; `follow` links that stand in the root itself."""
    pending = [(root, 0)]
    looked = 0
    while pending and looked < MOST_FOLDERS:
        folder, depth = pending.pop(0)
        looked += 1
        try:
            with os.scandir(folder) as entries:
                names = sorted((entry.name, entry.is_dir(follow_symlinks=follow and depth == 0)) for entry in entries)
        except OSError:
            continue
        if depth and (FILE, False) in names:
            yield folder
        elif depth < DEEPEST:
            below = (name for name, is_folder in names if is_folder and not name.startswith((".", "node_modules")))
            pending.extend((folder / name, depth + 1) for name in below)


def _permitted(name: str, rules: tuple[str, ...]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, rule) for rule in rules)
