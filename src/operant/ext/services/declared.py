"""What a skill says of its service, in the `metadata` of its SKILL.md.

metadata:
  operant.service: ./service.py             or "exec: node service.js", "mcp: npx some-server"; or "remote": it connects
  operant.hooks: tool.before                where it may hook; left out: anywhere
  operant.grants: session.read session.dispatch
  operant.network: api.example.com          hosts that it may reach; left out: none
  operant.secrets: EXAMPLE_KEY              variables that it may ask for
  operant.sandbox: "off"                    runs outside of the sandbox; the owner is told
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from operant.kit.nearest import nearest
from operant.sdk import POINTS, Invalid, Point, Record, SkillInfo, Syscall

_INTERPRETERS = {
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    ".ts": ("node", "--experimental-strip-types"),
    ".sh": ("bash",),
    ".pl": ("perl",),
    ".rb": ("ruby",),
}

REMOTE = "remote"
SETUP = "setup.sh"
"""What runs once in the copy of a skill, before the first start; it may make the program of the service."""


class Declared(Record):
    """A service as its skill declares it; `agent` is set when it is one agent's own."""

    name: str
    skill: str
    folder: str
    command: str
    agent: str = ""
    hooks: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    sandbox: bool = True

    @property
    def remote(self) -> bool:
        """Tell whether it runs elsewhere, and connects."""
        return self.command == REMOTE

    @property
    def words(self) -> bytes:
        """Return all that it declares, wherever it is; what is allowed is allowed with these words."""
        return msgspec.json.encode(msgspec.structs.replace(self, folder=""))


def services_of(skills: Iterable[SkillInfo], agent: str) -> Iterator[Declared]:
    """Yield the services of an agent's skills: its own, and those that all share.

    A skill of its own that has the name of a shared one hides that from the agent; the shared service goes on.
    """
    shared: set[str] = set()
    for skill in skills:
        own = skill.source == "agent"
        if skill.state == "broken" or (own and skill.state == "hidden") or (not own and skill.name in shared):
            continue
        if not own:
            shared.add(skill.name)
        told = declared(skill, agent)
        if told is not None:
            yield told


def declared(skill: SkillInfo, agent: str) -> Declared | None:
    """Return the service of a skill, or None when it has none."""
    told = skill.metadata
    command = told.get("operant.service", "").strip()
    if not command:
        return None
    own = agent if skill.source == "agent" else ""
    return Declared(
        name=f"{skill.name}@{own}" if own else skill.name,
        skill=skill.name,
        folder=skill.path,
        command=command,
        agent=own,
        hooks=_words(told.get("operant.hooks", "")),
        wants=tuple(dict.fromkeys(map(_capability, _words(told.get("operant.grants", ""))))),
        network=_words(told.get("operant.network", "")),
        secrets=_words(told.get("operant.secrets", "")),
        sandbox=told.get("operant.sandbox", "on").strip().lower() not in ("off", "false", "no"),
    )


_ALL = "admin"
_KINDS = "Name a file, `exec: PROGRAM …`, or `mcp: PROGRAM …` for an MCP server."


def check(told: Declared) -> None:
    """Refuse what could never run. Raises `Invalid`."""
    for point in told.hooks:
        try:
            point_of(point)
        except Invalid as error:
            raise Invalid(f"operant.hooks: {error.sentence}", error.hint) from error
    for word in told.wants:
        _check_capability(word)
    folder = Path(told.folder)
    if not told.remote and not (folder / SETUP).is_file():
        words_of(told.skill, told.command, folder)


def _calls() -> dict[str, str]:
    """Return what each syscall wants; those of extensions are among them."""
    every = cast("list[type[Syscall[Any]]]", Syscall.__subclasses__())
    return {one.call: one.capability for one in every}


def _capability(word: str) -> str:
    """Return the capability that a grant means: itself, or that of a syscall which it names."""
    meant = _calls().get(word, _ALL)
    return word if meant == _ALL else meant


def _check_capability(word: str) -> None:
    calls = _calls()
    if calls.get(word) == _ALL:
        raise Invalid(f"operant.grants: {word} is the owner's alone.", f"{_ALL!r} would allow it, and everything else.")
    held = set(calls.values())
    known = {*held, *(f"{one.partition('.')[0]}.*" for one in held)}
    if word not in known:
        near = nearest(word, {*known, *calls})
        meant = f"; did you mean {near}?" if near else "."
        raise Invalid(f"operant.grants: there is no {word!r}{meant}", "The reference of syscalls says what each needs.")


def point_of(name: str) -> Point[Any, Any]:
    """Return a hook point. Raises `Invalid`."""
    if name not in POINTS:
        near = nearest(name, POINTS)
        meant = f"; did you mean {near}?" if near else "."
        raise Invalid(f"There is no hook {name!r}{meant}", "The reference of hooks lists those there are.")
    return POINTS[name]


def words_of(skill: str, command: str, folder: Path) -> tuple[str, ...]:
    """Return the command line of a skill's service whose files are in `folder`. Raises `Invalid`."""
    kind, colon, rest = command.partition(":")
    if colon and kind == "exec":
        return _executed(rest, folder)
    if colon and kind == "mcp":
        return (sys.executable, "-m", "operant_mcp", skill, *_executed(rest, folder))
    if colon and kind in ("http", "https"):
        raise Invalid(f"operant.service: a service of the kind {kind!r} cannot be started.", _KINDS)
    path = _within(command, folder)
    if path.suffix == ".py":
        return (sys.executable, "-m", "operant_sdk", str(path))
    return (*_INTERPRETERS.get(path.suffix, ()), str(path))


def _executed(line: str, folder: Path) -> tuple[str, ...]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise Invalid(f"operant.service: the command {line.strip()!r} cannot be read: {error}.") from error
    if not words:
        raise Invalid("operant.service: `exec:` names no command.")
    first = str(_within(words[0], folder)) if "/" in words[0] and not words[0].startswith("/") else words[0]
    return (first, *words[1:])


def _within(name: str, folder: Path) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise Invalid(f"operant.service: {name} is no file of the skill.")
    return path


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall(r"[^\s,]+", text)))
