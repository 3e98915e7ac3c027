"""JSON Schemas as the services take them."""

from __future__ import annotations

from typing import Any, cast

from operant.sdk import Json

_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_COMBINED = frozenset({"anyOf", "oneOf", "allOf", "not", "enum"})
_LIMITS = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    }
)


def parameters_of(schema: Json) -> Json:
    """Return the schema of a tool's arguments: an object, no alternatives at its top. The tool checks them anyway."""
    bare = {name: value for name, value in schema.items() if name not in _COMBINED and name != "$schema"}
    return {**bare, "type": "object", "properties": schema.get("properties") or {}}


def closed(schema: Json) -> Json:
    """Return a schema with closed objects and without limits on values, which some services refuse in answers."""
    found = {name: value for name, value in schema.items() if name not in _LIMITS}
    for group in _MAPS:
        if isinstance(inner := found.get(group), dict):
            found[group] = {name: _closed(part) for name, part in cast(Json, inner).items()}
    for group in _LISTS:
        if isinstance(inner := found.get(group), list):
            found[group] = [_closed(part) for part in cast("list[Any]", inner)]
    if "items" in found:
        found["items"] = _closed(found["items"])
    if found.get("type") == "object" or "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


def _closed(part: Any) -> Any:
    return closed(cast(Json, part)) if isinstance(part, dict) else part


def is_strict(schema: Any) -> bool:
    """Tell whether every object in a schema is closed and demands all of its properties."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in cast("list[Any]", schema))
    if not isinstance(schema, dict):
        return True
    found = cast(Json, schema)
    if found.get("type") == "object":
        names = set(cast(Json, found.get("properties", {})))
        if found.get("additionalProperties") is not False or not names <= set(found.get("required", ())):
            return False
    inner = [part for group in _MAPS for part in cast(Json, found.get(group, {})).values()]
    inner += [found[group] for group in (*_LISTS, "items") if group in found]
    return all(is_strict(part) for part in inner)
