"""What other programs get of this one, as the SDK's server: it imports the SDK, so it is imported when it is wanted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
from mcp import MCPError
from mcp.server import Server

from operant.ext.mcp.serve.skills import IDENTIFIER, DirectoryParams, SkillParams, Skills, UnknownUri
from operant.ext.mcp.serve.tools import Desk
from operant.ext.mcp.settings import ServeSettings
from operant.sdk import Blobs, Client, Denied, Invalid, NotFound, OperantError, Unavailable

R = TypeVar("R")

ClientOf = Callable[[Any], Client]
"""Return the way to the system for whoever sent a request."""
_INSTRUCTIONS = (
    "An agent with its own memory, tools and conversations. `ask` says something to it and waits for the answer; name "
    "the session that it returned to go on there."
)
_NOT_NOW = -32000


def make_server(
    client_of: ClientOf, settings: ServeSettings, new_id: Callable[[], str], blobs: Blobs | None = None
) -> Server[Any]:
    """Make the server."""
    desk = Desk(settings, new_id, blobs)

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await told(desk.list(client_of(context))))

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await told(desk.call(client_of(context), params.name, params.arguments or {}))

    server = Server(
        "operant",
        version="1",
        title="Operant",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    if settings.skills:
        _offer_skills(server, client_of, Skills(settings.agent))
    return server


def _offer_skills(server: Server[Any], client_of: ClientOf, skills: Skills) -> None:
    async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=await told(skills.resources(client_of(context))))

    async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[skills.template])

    async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[await told(skills.read(client_of(context), str(params.uri)))])

    async def list_skills(context: Any, params: Any) -> dict[str, Any]:
        return _cacheable(skills=await told(skills.entries(client_of(context))))

    async def get_skill(context: Any, params: SkillParams) -> dict[str, Any]:
        return _cacheable(skill=await told(skills.entry(client_of(context), params.uri)))

    async def read_directory(context: Any, params: DirectoryParams) -> dict[str, Any]:
        return _cacheable(resources=await told(skills.directory(client_of(context), params.uri)))

    page = types.PaginatedRequestParams
    server.add_request_handler("resources/list", page, list_resources)
    server.add_request_handler("resources/templates/list", page, list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read_resource)
    server.add_request_handler("skills/list", page, list_skills)
    server.add_request_handler("skills/get", SkillParams, get_skill)
    server.add_request_handler("resources/directory/read", DirectoryParams, read_directory)
    server.extensions = {IDENTIFIER: {"directoryRead": True}}


def _cacheable(**result: Any) -> dict[str, Any]:
    """Make a result that a client may keep only for itself, and must ask for again."""
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}


async def told(work: Awaitable[R]) -> R:
    """Do something, and say what went wrong as the protocol says it."""
    try:
        return await work
    except UnknownUri as error:
        raise MCPError(types.INVALID_PARAMS, error.line(), {"uri": error.uri}) from error
    except (Invalid, Denied, NotFound) as error:
        raise MCPError(types.INVALID_PARAMS, error.line()) from error
    except Unavailable as error:
        raise MCPError(_NOT_NOW, error.line()) from error
    except OperantError as error:
        raise MCPError(types.INTERNAL_ERROR, error.line()) from error
