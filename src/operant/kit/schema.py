"""Check plain data against the part of JSON Schema that tools are described with; what is not known passes.

Known: `type`, `enum`, `const`, `properties`, `required`, `additionalProperties: false`, `items`, `minimum`, `maximum`,
`minLength`, `maxLength`, `minItems`, `maxItems`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def misfit(schema: Mapping[str, Any], value: Any) -> str:
    """Say the first thing in which a value does not fit, or return an empty text."""
    return next(_misfits(schema, value, ""), "")


def _misfits(schema: Mapping[str, Any], value: Any, where: str) -> Iterator[str]:
    here = where or "the whole"
    kinds = _listed(schema.get("type"))
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{here} must be {' or '.join(kinds)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{here} must be {schema['const']!r}"
    if isinstance(schema.get("enum"), list) and value not in schema["enum"]:
        yield f"{here} must be one of {', '.join(map(repr, schema['enum'][:20]))}"
    yield from _beyond(schema, value, here)
    if isinstance(value, dict):
        yield from _members(schema, cast("dict[str, Any]", value), where)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, one in enumerate(cast("list[Any]", value)):
            yield from _misfits(schema["items"], one, f"{where}[{index}]")


def _members(schema: Mapping[str, Any], value: dict[str, Any], where: str) -> Iterator[str]:
    known: dict[str, Any] = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{_path(where, name)} is missing"
    for name, one in value.items():
        if isinstance(known.get(name), dict):
            yield from _misfits(known[name], one, _path(where, name))
        elif name not in known and schema.get("additionalProperties") is False:
            yield f"{_path(where, name)} is not known"


def _beyond(schema: Mapping[str, Any], value: Any, here: str) -> Iterator[str]:
    words = ("short", "long")
    if isinstance(value, str):
        least, most, size = schema.get("minLength"), schema.get("maxLength"), float(len(value))
    elif isinstance(value, list):
        least, most, size = schema.get("minItems"), schema.get("maxItems"), float(len(cast("list[Any]", value)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        least, most, size, words = schema.get("minimum"), schema.get("maximum"), float(value), ("small", "large")
    else:
        return
    if isinstance(least, int | float) and size < least:
        yield f"{here} is too {words[0]}: {least} at least"
    if isinstance(most, int | float) and size > most:
        yield f"{here} is too {words[1]}: {most} at most"


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, (object,)))


def _listed(kinds: Any) -> list[str]:
    if isinstance(kinds, str):
        return [kinds]
    return [str(kind) for kind in cast("list[Any]", kinds)] if isinstance(kinds, list) else []


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
