"""The description of every route, made of the routes themselves: OpenAPI 3.1."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from operant.ext.gateway.api import Call, Nothing, Route, reply
from operant.ext.gateway.problem import PROBLEM, Problem
from operant.sdk import Json

VERSION = "1.0.0"
_REF = "#/components/schemas/{name}"
_TAGS = {
    "chat": "Say something, and learn what became of it.",
    "sessions": "Conversations and what is on record of them.",
    "files": "Files of sessions and workspaces.",
    "approvals": "Questions that wait for a person.",
    "agents": "Who answers.",
    "skills": "What agents read when a task needs it.",
    "services": "Programs of skills that hook into Operant.",
    "tools": "What agents can do.",
    "models": "What thinks.",
    "usage": "Tokens and money.",
    "activity": "What goes on.",
    "jobs": "What happens by itself.",
    "access": "Who may connect.",
    "system": "How it is.",
    "websocket": "Frames are described in docs/reference/http.md.",
    "openai": "The protocol of OpenAI: an agent is a model.",
    "open": "Answers without a token.",
}


class OpenApi:
    """Describe routes."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._routes = (*routes, *self.routes())
        self._made: Json | None = None

    def routes(self) -> list[Route]:
        """Return the route that shows the description."""
        return [Route("GET", "/openapi.json", self.show, "Show this description.", "system", returns=Json)]

    async def show(self, call: Call[Nothing, None]) -> Any:
        """Show the description."""
        return reply(call.request, self.document())

    def document(self) -> Json:
        """Return the description."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> Json:
        kinds = [
            kind for route in self._routes for kind in (route.query, route.body, route.returns) if kind is not None
        ]
        schemas, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_REF)
        refs = iter(schemas)
        paths: dict[str, Json] = {}
        for route in self._routes:
            query = next(refs)
            body = next(refs) if route.body is not None else None
            returns = next(refs) if route.returns is not None else None
            made = _operation(route, _resolved(query, components), body, returns)
            paths.setdefault(route.path, {})[route.method.lower()] = made
        return {
            "openapi": "3.1.0",
            "info": {
                "title": "Operant",
                "version": VERSION,
                "description": "Talk to your agent, watch it work, and look into everything it did.",
            },
            "tags": [{"name": name, "description": words} for name, words in _TAGS.items()],
            "security": [{"bearer": []}, {"cookie": []}],
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer"},
                    "cookie": {"type": "apiKey", "in": "cookie", "name": "operant_8000"},
                },
            },
        }


def _operation(route: Route, query: Json, body: Json | None, returns: Json | None) -> Json:
    parts = [_parameter(name) for name in re.findall(r"{(\w+)}", route.path)]
    required = set(query.get("required", ()))
    parts += [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in query.get("properties", {}).items()
    ]
    if route.method == "POST":
        parts.append({
            "name": "Idempotency-Key", "in": "header", "required": False,
            "schema": {"type": "string", "maxLength": 200},
            "description": "The same key gives the same answer, and the same turn.",
        })  # fmt: skip
    made: Json = {
        "operationId": _id(route),
        "summary": route.summary,
        "tags": [route.tag if route.tag in _TAGS else "system"],
        "parameters": parts,
        "responses": {**_success(route, returns), **_failures(route)},
    }
    if body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    elif route.takes != "application/json":
        schema = {"type": "string", "format": "binary"}
        made["requestBody"] = {"required": True, "content": {route.takes: {"schema": schema}}}
    if route.open:
        made["security"] = []
    return made


def _parameter(name: str) -> Json:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": 400},
    }


def _success(route: Route, returns: Json | None) -> Json:
    schema: Json = returns if returns is not None else {"type": "string"}
    kinds: Json = {} if route.status == 101 else {route.sends: {"schema": schema}}  # a switch of protocol has no body
    for kind in route.also:
        kinds[kind] = {"schema": {"type": "string"}}
    said: Json = {"description": route.also.get("text/event-stream", "As asked.")}
    if kinds:
        said["content"] = kinds
    found: Json = {str(route.status): said}
    if route.path == "/api/chat/{session}":
        found["202"] = {
            "description": "Taken; the answer will be on record.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    if route.method == "GET":
        found["304"] = {"description": "It has not changed since the tag that was sent."}
    return found


def _failures(route: Route) -> Json:
    said = {
        "description": "What went wrong, and what to do.",
        "content": {PROBLEM: {"schema": {"$ref": _REF.format(name="Problem")}}},
    }
    if route.path.startswith("/v1/"):
        said = {"description": "What went wrong.", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {"4XX": said, "5XX": said}


def _id(route: Route) -> str:
    words = re.findall(r"\w+", route.path)
    return "_".join([route.method.lower(), *words])


def _resolved(schema: Json, components: Json) -> Json:
    ref = schema.get("$ref", "")
    return cast("Json", components.get(ref.rpartition("/")[2], {})) if ref else schema
