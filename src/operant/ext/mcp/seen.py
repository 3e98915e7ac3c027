"""What a server says of its tools, taken as the words of a stranger: short, plain, and known by a digest."""

from __future__ import annotations

import hashlib
import re
from fnmatch import fnmatchcase
from typing import Any, cast

import msgspec

from operant.ext.mcp.settings import ServerSettings
from operant.kit.text import plain
from operant.sdk import Json, Record

MOST_TOOLS = 1_000
"""Tools of one server that are looked at; more are left out."""
MOST_WORDS = 1_000
"""Characters of a description that a model is told."""
MOST_SCHEMA = 16_384
"""Bytes of a schema; a tool with a longer one is refused."""
LONGEST_NAME = 64
"""Characters of a tool's name that every provider takes."""
_DEEPEST = 32
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")


class Seen(Record):
    """A tool as a server describes it; `refused` says why nobody can have it."""

    tool: str
    digest: str
    description: str
    schema: Json
    reads: bool = False
    repeats: bool = False
    refused: str = ""


def see(said: Json, settings: ServerSettings) -> Seen:
    """Take in what a server says of one tool."""
    tool = str(said.get("name", ""))
    hints = cast("Json", said.get("annotations") or {})
    schema = cast("Json", said.get("inputSchema") or {})
    refused = _refusal(tool, schema, settings)
    return Seen(
        tool=tool,
        digest=digest_of(said),
        description=harmless(str(said.get("description") or said.get("title") or "")),
        schema={} if refused else _plain_schema(schema),
        reads=hints.get("readOnlyHint") is True,
        repeats=hints.get("idempotentHint") is True,
        refused=refused,
    )


def digest_of(said: Json) -> str:
    """Return the digest of all that a model or a person could be told of a tool."""
    told = {
        key: said.get(key) for key in ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
    }
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()


def harmless(text: str) -> str:
    """Return a stranger's words without what hides in them, in one paragraph, and short."""
    words = " ".join(plain(text).split())
    return words if len(words) <= MOST_WORDS else f"{words[:MOST_WORDS]}…"


def name_of(server: str, tool: str) -> str:
    """Return what agents call a tool: `mcp__<server>__<tool>`, with a digest where that would not do."""
    clean = _FOREIGN.sub("_", tool).strip("_") or "tool"
    name = f"mcp__{server}__{clean}"
    if clean == tool and len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.sha256(tool.encode(errors="replace")).hexdigest()[:6]
    return f"{name[: LONGEST_NAME - len(mark) - 1]}_{mark}"


def _refusal(tool: str, schema: Json, settings: ServerSettings) -> str:
    if not tool or len(tool) > 256:
        return "it has no name that can be used"
    if not any(fnmatchcase(tool, one) for one in settings.tools) or any(
        fnmatchcase(tool, one) for one in settings.deny
    ):
        return "the configuration leaves it out"
    size = len(msgspec.json.encode(schema))
    if size > MOST_SCHEMA:
        return f"its schema has {size:,} bytes, of {MOST_SCHEMA:,} at most"
    if schema.get("type", "object") != "object" or _depth(schema) > _DEEPEST:
        return "its schema describes no object"
    return ""


def _depth(value: Any, so_far: int = 0) -> int:
    if so_far > _DEEPEST or not isinstance(value, dict | list):
        return so_far
    inside = list(cast("Json", value).values()) if isinstance(value, dict) else cast("list[Any]", value)
    return max((_depth(one, so_far + 1) for one in inside), default=so_far)


def _plain_schema(schema: Json) -> Json:
    return {"type": "object", "properties": {}, **cast("Json", _plain_value(schema))}


def _plain_value(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): _plain_value(one) for key, one in cast("Json", value).items()}
    if isinstance(value, list):
        return [_plain_value(one) for one in cast("list[Any]", value)]
    return value
