"""The agent's skills for other programs, by SEP-2640: entries with a digest a file, and `skill://` resources."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import mimetypes
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
import msgspec

from operant.kit.beneath import Beneath, FileError
from operant.kit.frontmatter import read_matter
from operant.kit.yaml import YamlError
from operant.sdk import Client, Json, NotFound, Record, SkillGet, SkillInfo, SkillList

IDENTIFIER = "io.modelcontextprotocol/skills"
MANIFEST = "SKILL.md"
MOST_FILE = 8 * 1024 * 1024
"""Bytes of one file of a skill; a skill with a larger one is not offered."""
MOST_FILES = 500
_SCHEME = "skill://"


class SkillParams(types.RequestParams):
    """Which skill."""

    uri: str


class DirectoryParams(types.RequestParams):
    """Which folder of a skill."""

    uri: str
    cursor: str | None = None


class Shown(Record):
    """A skill as others may have it; `files` by their name in its folder."""

    name: str
    matter: Json
    files: dict[str, bytes]


class Skills:
    """Answer about the skills of one agent; what is on the disk now is what is told."""

    template = types.ResourceTemplate(
        uri_template="skill://{skill}/{+path}", name="skill", description="A file of a skill; see skills/list."
    )

    def __init__(self, agent: str) -> None:
        self._agent = agent

    async def entries(self, client: Client) -> list[Json]:
        """Return an entry for every skill."""
        return [_entry(one) for one in await self._all(client)]

    async def entry(self, client: Client, uri: str) -> Json:
        """Return the entry of one. Raises `NotFound`."""
        skill, path = _named(uri)
        if path != MANIFEST:
            raise _unknown(uri)
        return _entry(await self._one(client, skill, uri))

    async def resources(self, client: Client) -> list[types.Resource]:
        """Return the manifest of every skill; the files of one are in its entry."""
        return [
            types.Resource(
                uri=_uri(one.name, MANIFEST),
                name=one.name,
                description=str(one.matter["description"]),
                mime_type="text/markdown",
                size=len(one.files[MANIFEST]),
            )
            for one in await self._all(client)
        ]

    async def read(self, client: Client, uri: str) -> Any:
        """Return the contents of a file. Raises `NotFound`."""
        skill, path = _named(uri)
        data = (await self._one(client, skill, uri)).files.get(path)
        if data is None:
            raise _unknown(uri)
        try:
            return types.TextResourceContents(uri=uri, mime_type=_kind(path), text=data.decode())
        except UnicodeDecodeError:
            return types.BlobResourceContents(uri=uri, mime_type=_kind(path), blob=base64.b64encode(data).decode())

    async def directory(self, client: Client, uri: str) -> list[Json]:
        """Return what is directly in a folder of a skill. Raises `NotFound`."""
        skill, path = _named(uri)
        one = await self._one(client, skill, uri)
        folder = path.strip("/")
        inside = {
            PurePosixPath(name).relative_to(folder).parts[0]: len(PurePosixPath(name).relative_to(folder).parts) > 1
            for name in one.files
            if not folder or (PurePosixPath(name).is_relative_to(folder) and name != folder)
        }
        if not inside:
            raise _unknown(uri)
        return [_listed(one, folder, name, is_folder) for name, is_folder in sorted(inside.items())]

    async def _all(self, client: Client) -> list[Shown]:
        found = await client.call(SkillList(agent=self._agent))
        shown = [await self._shown(client, info) for info in found if info.state in ("ready", "missing")]
        return [one for one in shown if one is not None]

    async def _one(self, client: Client, name: str, uri: str) -> Shown:
        found = await client.call(SkillList(agent=self._agent))
        info = next((one for one in found if one.name == name and one.state in ("ready", "missing")), None)
        shown = await self._shown(client, info) if info is not None else None
        if shown is None:
            raise _unknown(uri)
        return shown

    async def _shown(self, client: Client, info: SkillInfo) -> Shown | None:
        """Read a skill; None for one that the standard would not let be shared."""
        text = await client.call(SkillGet(skill=info.name, agent=self._agent))
        names = [name for name in text.files if not any(part.startswith((".", "__")) for part in name.split("/"))]
        if len(names) > MOST_FILES:
            return None
        files = await asyncio.to_thread(_read, info.path, names)
        matter = _matter(files.get(MANIFEST, b"")) if files is not None else None
        if files is None or matter is None or matter.get("name") != info.name:
            return None
        return Shown(name=info.name, matter=matter, files=files)


def _read(path: str, names: list[str]) -> dict[str, bytes] | None:
    """Read files below a skill's folder and nowhere else."""
    root = path.removesuffix(f"/{MANIFEST}")
    try:
        with Beneath(root) as folder:
            return {name: folder.read_bytes(name, MOST_FILE) for name in names}
    except FileError:
        return None


def _matter(data: bytes) -> Json | None:
    """Return the frontmatter as it is written, as JSON."""
    try:
        found: Any = read_matter(data.decode()).settings.data
        made: Json = msgspec.json.decode(msgspec.json.encode(found), type=dict[str, Any])
    except (UnicodeDecodeError, YamlError, msgspec.MsgspecError, TypeError):
        return None
    return made if isinstance(made.get("description"), str) else None


def _entry(one: Shown) -> Json:
    return {
        "uri": _uri(one.name, MANIFEST),
        "frontmatter": one.matter,
        "resources": [
            {"uri": _uri(one.name, name), "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}
            for name, data in sorted(one.files.items(), key=lambda item: (item[0] != MANIFEST, item[0]))
        ],
    }


def _listed(one: Shown, folder: str, name: str, is_folder: bool) -> Json:
    path = f"{folder}/{name}".lstrip("/")
    if is_folder:
        return {"uri": _uri(one.name, path), "name": name, "mimeType": "inode/directory"}
    return {"uri": _uri(one.name, path), "name": name, "mimeType": _kind(path), "size": len(one.files[path])}


def _uri(skill: str, path: str) -> str:
    return f"{_SCHEME}{quote(skill)}/{quote(path)}"


def _named(uri: str) -> tuple[str, str]:
    """Split an address into the skill and the path in its folder. Raises `NotFound`."""
    if not uri.startswith(_SCHEME):
        raise _unknown(uri)
    skill, _, path = unquote(uri.removeprefix(_SCHEME)).partition("/")
    return skill, path


def _kind(path: str) -> str:
    if path.endswith(".md"):
        return "text/markdown"
    return mimetypes.guess_type(path)[0] or "text/plain"


class UnknownUri(NotFound):
    """No skill of ours has this address."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"There is nothing at {uri[:200]!r}.", "See skills/list.")
        self.uri = uri


def _unknown(uri: str) -> UnknownUri:
    return UnknownUri(uri)
