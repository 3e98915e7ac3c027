"""The tools that other programs get: the agent itself, its conversations, and those of its tools that were chosen."""

from __future__ import annotations

import base64
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Annotated, Any

import mcp_types as types
import msgspec
from msgspec import Meta

from operant.ext.mcp.serve.asking import Order, ask, conversation
from operant.ext.mcp.settings import ServeSettings
from operant.sdk import (
    AgentGet,
    BlobRef,
    Blobs,
    Client,
    Denied,
    Invalid,
    Json,
    NotFound,
    OperantError,
    Record,
    SessionList,
    Text,
    ToolInvoke,
    ToolList,
    ToolResult,
    ToolSpec,
)

MOST_MEDIA = 4 * 1024 * 1024


class Ask(Record, forbid_unknown_fields=True):
    """Say something to the agent and wait for its answer. It works with its own tools and remembers the session."""

    message: Annotated[str, Meta(min_length=1)]
    session: Annotated[str, Meta(max_length=200, description="one that `ask` returned, to go on; empty: a new one")] = (
        ""
    )
    agent: Annotated[str, Meta(description="another agent than the usual one")] = ""
    key: Annotated[str, Meta(max_length=200, description="your id of the message: sent twice, it is taken once")] = ""


class Sessions(Record, forbid_unknown_fields=True):
    """List conversations, the last changed first."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class History(Record, forbid_unknown_fields=True):
    """Return the last messages of a conversation."""

    session: str
    limit: Annotated[int, Meta(ge=1, le=500)] = 20


OWN: dict[str, type[Record]] = {"ask": Ask, "sessions": Sessions, "history": History}


class Desk:
    """List and call the tools."""

    def __init__(self, settings: ServeSettings, new_id: Callable[[], str], blobs: Blobs | None = None) -> None:
        self._settings = settings
        self._new_id = new_id
        self._blobs = blobs

    async def list(self, client: Client) -> list[types.Tool]:
        """Return what somebody may call."""
        chosen = await self._chosen(client)
        return [*(_own(name, kind) for name, kind in OWN.items()), *(_theirs(spec) for spec in chosen)]

    async def call(self, client: Client, name: str, arguments: Json) -> types.CallToolResult:
        """Call a tool; what it cannot do is a result that says so. Raises `NotFound` for one that is not offered."""
        work: Any = {"ask": self._ask, "sessions": self._sessions, "history": self._history}.get(name)
        if work is None and name not in {spec.name for spec in await self._chosen(client)}:
            raise NotFound(f"There is no tool {name!r} here.", "See tools/list.")
        try:
            if work is not None:
                return await work(client, _fitted(name, arguments))
            return await self._invoke(client, name, arguments)
        except OperantError as error:
            return types.CallToolResult(content=[types.TextContent(text=error.line())], is_error=True)

    async def _chosen(self, client: Client) -> list[ToolSpec]:
        """Return the agent's tools that the owner lets others use; none of them takes the name of one of ours."""
        if not self._settings.tools:
            return []
        offered = await client.call(ToolList(agent=self._settings.agent or await _default(client)))
        return [
            spec
            for spec in offered
            if spec.name not in OWN and any(fnmatchcase(spec.name, one) for one in self._settings.tools)
        ]

    async def _ask(self, client: Client, wanted: Ask) -> types.CallToolResult:
        session = wanted.session or f"mcp/{self._new_id()}"
        agent = wanted.agent or self._settings.agent
        said = await ask(client, Order(message=wanted.message, session=session, agent=agent, key=wanted.key))
        text = said.answer
        if said.state == "waiting":
            text = f"{text}\n\n[It waits for its owner's yes or no: {said.question}]".strip()
        return types.CallToolResult(
            content=[types.TextContent(text=f"{text}\n\n[session {said.session}]")],
            structured_content=msgspec.structs.asdict(said),
            is_error=said.state in ("error", "rejected", "budget"),
        )

    async def _sessions(self, client: Client, wanted: Sessions) -> types.CallToolResult:
        found = await client.call(SessionList(limit=wanted.limit))
        return _data(sessions=[{"session": one.key, "title": one.title, "agent": one.agent} for one in found])

    async def _history(self, client: Client, wanted: History) -> types.CallToolResult:
        return _data(messages=await conversation(client, wanted.session, wanted.limit))

    async def _invoke(self, client: Client, name: str, arguments: Json) -> types.CallToolResult:
        result = await client.call(ToolInvoke(name=name, arguments=arguments, agent=self._settings.agent))
        return types.CallToolResult(content=await self._content(result), is_error=result.outcome != "ok")

    async def _content(self, result: ToolResult) -> list[Any]:
        content: list[Any] = []
        for part in result.parts:
            if isinstance(part, Text):
                content.append(types.TextContent(text=part.text))
            elif isinstance(part, BlobRef):
                content.append(await self._file(part))
        return content

    async def _file(self, part: BlobRef) -> Any:
        kind = part.media_type.partition("/")[0]
        if self._blobs is None or kind not in ("image", "audio") or part.size > MOST_MEDIA:
            return types.TextContent(text=f"[{part.name or 'file'}: {part.media_type}, {part.size:,} bytes]")
        data = base64.b64encode(await self._blobs.get_blob(part.digest)).decode()
        made = types.ImageContent if kind == "image" else types.AudioContent
        return made(data=data, mime_type=part.media_type)


async def _default(client: Client) -> str:
    """Return the default agent; who may not know agents is offered what every agent has."""
    try:
        return (await client.call(AgentGet(agent=""))).name
    except Denied:
        return ""


def _own(name: str, kind: type[Record]) -> types.Tool:
    schema = msgspec.json.schema(kind)
    top: Json = dict(schema["$defs"][kind.__name__])
    words = top.pop("description", "")
    top.pop("title", None)
    hints = types.ToolAnnotations(read_only_hint=name != "ask", destructive_hint=None if name != "ask" else False)
    return types.Tool(name=name, description=words, input_schema=top, annotations=hints)


def _theirs(spec: ToolSpec) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=spec.effect == "read", idempotent_hint=spec.effect == "idempotent")
    return types.Tool(name=spec.name, description=spec.description, input_schema=spec.schema, annotations=hints)


def _fitted(name: str, arguments: Json) -> Record:
    try:
        return msgspec.convert(arguments, OWN[name])
    except msgspec.ValidationError as error:
        raise Invalid(f"The arguments of {name} do not fit: {error}.", "See its schema in tools/list.") from error


def _data(**data: Any) -> types.CallToolResult:
    text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=data)
