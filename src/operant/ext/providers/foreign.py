"""A history that several providers have written: what one of them gave, another must not choke on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from operant.sdk import Message, ToolCall

_BAD = re.compile(r"[^a-zA-Z0-9_-]")
NAME_LENGTH = 64


def marked(dialect: str, provider: str, payload: str) -> str:
    """Return what a provider wants back, with a mark of who wants it."""
    return f"{dialect} {provider}\n{payload}"


def own(dialect: str, provider: str, opaque: str) -> str:
    """Return the payload of a mark, empty where it is not this provider's in this protocol."""
    mark, _, payload = opaque.partition("\n")
    return payload if mark == f"{dialect} {provider}" else ""


def fit_name(name: str) -> str:
    """Return the name of a tool as every protocol takes it; models make up names too."""
    return _BAD.sub("_", name)[:NAME_LENGTH] or "unknown"


def arguments_of(call: ToolCall) -> Any:
    """Return a call's arguments as the model wrote them, in an object of their own where they are none."""
    if not call.arguments.strip():
        return {}
    try:
        msgspec.json.decode(call.arguments, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return {"_raw": call.arguments}
    return msgspec.Raw(call.arguments.encode())


def distinct(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages with no id of a call twice: some servers begin to count anew in every reply."""
    seen: set[str] = set()
    aliases: dict[str, str] = {}
    found: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            aliases = _aliases(message, seen)
            found.append(_renamed(message, aliases) if aliases else message)
        elif message.role == "tool" and message.call_id in aliases:
            found.append(replace(message, call_id=aliases[message.call_id]))
        else:
            found.append(message)
    return found


def _aliases(message: Message, seen: set[str]) -> dict[str, str]:
    """Return new ids for those that were seen; they depend on nothing that comes later."""
    aliases: dict[str, str] = {}
    for part in message.parts:
        if not isinstance(part, ToolCall):
            continue
        id = part.id
        while id in seen:
            id = aliases[part.id] = f"{part.id}_{len(seen)}" if id == part.id else f"{id}_"
        seen.add(id)
    return aliases


def _renamed(message: Message, aliases: dict[str, str]) -> Message:
    parts = (
        replace(part, id=aliases[part.id]) if isinstance(part, ToolCall) and part.id in aliases else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))
