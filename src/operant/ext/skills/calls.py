"""The syscalls about skills: list, read, add, remove, reset, validate."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from operant.ext.skills.format import FILE, Unreadable, check_skill, decoded, read_skill
from operant.ext.skills.shelf import SHIPPED, Shelf
from operant.sdk import (
    Conflict,
    Finding,
    Host,
    Invalid,
    NotFound,
    Principal,
    SkillAdd,
    SkillGet,
    SkillInfo,
    SkillList,
    SkillRemove,
    SkillReset,
    SkillRoots,
    SkillText,
    SkillValidate,
)

_MOST_BYTES = 64 << 20


class SkillCalls:
    """Carry out the calls."""

    def __init__(self, host: Host, shelf: Shelf) -> None:
        self._host = host
        self._shelf = shelf
        self._folder = Path(host.home) / "skills"

    async def list(self, who: Principal, call: SkillList) -> tuple[SkillInfo, ...]:
        """List skills."""
        return await asyncio.to_thread(self._shelf.all, self._host.agents.get(call.agent))

    async def roots(self, who: Principal, call: SkillRoots) -> tuple[str, ...]:
        """List folders."""
        return tuple(str(root.path) for root in self._shelf.roots(self._host.agents.get(call.agent)))

    async def get(self, who: Principal, call: SkillGet) -> SkillText:
        """Return one skill with its instructions."""
        found = self._shelf.known(self._host.agents.get(call.agent)).get(call.skill)
        if found is None:
            raise NotFound(f"There is no skill {call.skill!r}.", "`operant skill list` shows those there are.")
        files = await asyncio.to_thread(_files, found.folder)
        return SkillText(info=found.info, body=found.text.body, files=files)

    async def add(self, who: Principal, call: SkillAdd) -> SkillInfo:
        """Copy a skill into the home; nothing of it is run."""
        name = await asyncio.to_thread(self._copy, call.path)
        found = self._shelf.usable(self._host.agents.get("")).get(name)
        if found is None:
            raise NotFound(f"The skill {name} is there, and the agent may not use it.", "See permissions.skills.")
        return found.info

    async def remove(self, who: Principal, call: SkillRemove) -> str:
        """Put a skill of the home aside and return where; one that comes with Operant is marked. Nothing is deleted."""
        if not (self._folder / call.skill / FILE).is_file() and call.skill in _shipped():
            mark = self._shelf.removed(call.skill)
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mark.touch(mode=0o600)
            return str(mark)
        folder = self._own(call.skill)
        trash = self._folder / ".trash"
        trash.mkdir(mode=0o700, exist_ok=True)
        return str(folder.rename(trash / f"{folder.name}-{self._host.clock.now()}"))

    async def reset(self, who: Principal, call: SkillReset) -> tuple[str, ...]:
        """Bring back skills that come with Operant: what hides them is put aside, what removed them is taken away."""
        shipped = _shipped()
        if call.skill and call.skill not in shipped:
            raise NotFound(f"No skill {call.skill!r} comes with Operant.", f"There are: {', '.join(sorted(shipped))}.")
        wanted = {call.skill} if call.skill else shipped
        hiding = sorted(name for name in wanted if (self._folder / name).is_dir())
        for name in hiding:
            await self.remove(who, SkillRemove(skill=name))
        marked = sorted(name for name in wanted if self._shelf.removed(name).exists())
        for name in marked:
            self._shelf.removed(name).unlink()
        return tuple(dict.fromkeys((*hiding, *marked)))

    async def validate(self, who: Principal, call: SkillValidate) -> tuple[Finding, ...]:
        """Check a skill by the letter of the standard."""
        return await asyncio.to_thread(_validated, call.path)

    def _copy(self, path: str) -> str:
        source = Path(path).expanduser()
        file = source / FILE
        if not file.is_file():
            raise NotFound(f"There is no {FILE} in {source}.", "Name the folder of a skill.")
        try:
            name = read_skill(decoded(file.read_bytes()), source.name).name
        except (Unreadable, OSError) as error:
            raise Invalid(f"{file} is no skill: {error}.") from error
        if "/" in name or name.startswith("."):
            raise Invalid(f"{name!r} cannot be the name of a skill.")
        target = self._folder / name
        if target.exists():
            raise Conflict(f"There is already a skill {name} in {self._folder}.", "Remove it first.")
        if any(one.is_symlink() for one in source.rglob("*")):
            raise Invalid(f"{source} has links in it; a skill is a folder of plain files.")
        if sum(one.stat().st_size for one in source.rglob("*") if one.is_file()) > _MOST_BYTES:
            raise Invalid(f"{source} is larger than {_MOST_BYTES >> 20} MiB.")
        shutil.copytree(source, target)
        return name

    def _own(self, name: str) -> Path:
        """Return the folder of a skill of the home: of this name, or with a skill of this name in it."""
        folder = self._folder / name
        if "/" in name or name.startswith("."):
            raise NotFound(f"{name!r} cannot be the name of a skill.", "`operant skill list` has their names.")
        if (folder / FILE).is_file():
            return folder
        for one in self._shelf.all(self._host.agents.get("")):
            if one.name == name and one.source == "home":
                return Path(one.path)
        raise NotFound(f"There is no skill {name!r} in {self._folder}.", "Only those of the home can be removed.")


def _shipped() -> set[str]:
    return {path.name for path in SHIPPED.iterdir() if path.is_dir()}


def _files(folder: str) -> tuple[str, ...]:
    root = Path(folder)
    return tuple(sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()))


def _validated(path: str) -> tuple[Finding, ...]:
    source = Path(path).expanduser()
    try:
        text = decoded((source / FILE).read_bytes())
    except Unreadable as error:
        return (Finding(name=source.name, ok=False, sentence=str(error)),)
    except OSError as error:
        raise NotFound(f"{source / FILE} cannot be read: {error}.", "Name the folder of a skill.") from error
    return tuple(Finding(name=source.name, ok=False, sentence=fault) for fault in check_skill(text, source.name))
