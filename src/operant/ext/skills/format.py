"""`SKILL.md` as the standard has it: read leniently where we find it, checked strictly where it is ours.

The standard: agentskills.io, 2026-08.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, cast

from operant.kit.frontmatter import Matter, read_matter
from operant.kit.yaml import YamlError
from operant.sdk import Json, Record

FILE = "SKILL.md"
NAME_CHARS = 64
DESCRIPTION_CHARS = 1024
COMPATIBILITY_CHARS = 500
KEYS = ("name", "description", "license", "compatibility", "allowed-tools", "metadata")
OURS = ("service", "env")
"""Keys at the top that older programs write; they belong under `metadata`."""
_REMARK = re.compile(r"\A\ufeff?(?:[ \t]*(?:#.*)?\r?\n)+(?=---[ \t]*\r?\n)")
_COLON = re.compile(r"^([ \t]*[A-Za-z][\w.-]*):[ \t]+(?![\"'|>\[{])(.*:[ \t].*)$", re.MULTILINE)


class Unreadable(Exception):
    """Say in one sentence why a file is no skill."""


class Text(Record):
    """A skill as its file says it; `warnings` are what the standard would not let pass."""

    name: str
    description: str
    body: str
    license: str = ""
    compatibility: str = ""
    tools: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


def read_skill(text: str, folder: str) -> Text:
    """Read a skill that somebody wrote, as far as it can be understood. Raises `Unreadable`."""
    matter, warnings = _matter(text)
    data = _mapping(matter.settings.data)
    description = _text(data.get("description"))
    if not description:
        raise Unreadable("it has no description")
    name = _text(data.get("name")) or folder
    warnings += faults(data, folder)
    metadata = _metadata(data)
    return Text(
        name=name,
        description=description,
        body=matter.body,
        license=_text(data.get("license")),
        compatibility=_text(data.get("compatibility")),
        tools=tuple(_text(data.get("allowed-tools")).split()),
        env=_words(metadata.get("env", "") or data.get("env")),
        programs=_words(metadata.get("bins", "") or metadata.get("requires", "")),
        metadata=metadata,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def decoded(data: bytes) -> str:
    """Return the text of a file. Raises `Unreadable`."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable("it is no text in UTF-8") from error


def check_skill(text: str, folder: str) -> list[str]:
    """Return what is wrong with a skill by the letter of the standard."""
    try:
        matter = read_matter(text)
    except YamlError as error:
        colon = "; a value with a colon takes quotes" if _COLON.search(text) else ""
        return [f"line {error.line}: {error.sentence}{colon}"]
    data: Any = matter.settings.data
    return faults(_mapping(data), folder) if isinstance(data, dict) else ["it has no frontmatter"]


def faults(data: Json, folder: str) -> list[str]:
    """Return what the standard does not allow."""
    found = [f"unknown key {key!r}" for key in data if key not in KEYS]
    name, description = data.get("name"), data.get("description")
    found += _name_faults(name, folder)
    if not isinstance(description, str) or not description.strip():
        found.append("`description` is missing")
    elif len(description) > DESCRIPTION_CHARS:
        found.append(f"`description` has {len(description)} characters, {DESCRIPTION_CHARS} at most")
    compatibility = data.get("compatibility")
    if compatibility is not None and (not isinstance(compatibility, str) or len(compatibility) > COMPATIBILITY_CHARS):
        found.append(f"`compatibility` must be a text of {COMPATIBILITY_CHARS} characters at most")
    metadata = data.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        found.append("`metadata` must have names and texts")
    return found


def _name_faults(name: object, folder: str) -> list[str]:
    if not isinstance(name, str) or not name.strip():
        return ["`name` is missing"]
    name = unicodedata.normalize("NFKC", name.strip())
    found: list[str] = []
    if len(name) > NAME_CHARS:
        found.append(f"`name` has {len(name)} characters, {NAME_CHARS} at most")
    if name != name.lower():
        found.append("`name` must be in small letters")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        found.append("`name` must not begin or end with a hyphen, nor have two in a row")
    if not all(letter.isalnum() or letter == "-" for letter in name):
        found.append("`name` may have letters, digits and hyphens only")
    if name != unicodedata.normalize("NFKC", folder):
        found.append(f"`name` is {name!r} and the folder is {folder!r}; they must be the same")
    return found


def _matter(text: str) -> tuple[Matter, list[str]]:
    """Split a file; a remark before the frontmatter and a colon that nobody quoted are forgiven."""
    bare = _REMARK.sub("", text, count=1)
    remarks = ["the frontmatter is not the first thing in the file"] if bare != text else []
    try:
        return read_matter(bare), remarks
    except YamlError as error:
        quoted = _COLON.sub(_quoted, bare)
        try:
            return read_matter(quoted), [*remarks, "a value with a colon is not in quotes"]
        except YamlError:
            raise Unreadable(f"line {error.line}: {error.sentence}") from error


def _quoted(match: re.Match[str]) -> str:
    value = match[2].replace("\\", "\\\\").replace('"', '\\"')
    return f'{match[1]}: "{value}"'


def _mapping(data: Any) -> Json:
    return {str(key): value for key, value in cast("dict[Any, Any]", data).items()} if isinstance(data, dict) else {}


def _metadata(data: Json) -> dict[str, str]:
    found = _mapping(data.get("metadata"))
    for key in OURS:
        if key in data:
            found.setdefault(f"operant.{key}" if key == "service" else key, data[key])
    return {key: _joined(value) for key, value in found.items()}


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(str(one) for one in cast("list[Any]", value))
    return str(value)


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _words(value: Any) -> tuple[str, ...]:
    return tuple(re.findall(r"[\w.+-]+", _joined(value))) if value else ()
