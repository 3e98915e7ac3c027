"""What several services refuse alike: names of tools, schemas, bytes in text, and signatures that nobody gave."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from operant.sdk.testing.wires.wire import Json, Wrong

_T = TypeVar("_T")
_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
_UNDER = ("properties", "$defs", "definitions", "patternProperties")


def shaped(body: Any, shape: type[_T]) -> _T:
    """Give a body its types. Raises `Wrong`."""
    try:
        return msgspec.convert(body, shape)
    except msgspec.ValidationError as error:
        raise Wrong(str(error)) from None


def check_names(names: Iterable[str], pattern: re.Pattern[str], where: str = "tools") -> None:
    """Refuse names that are malformed or not unique."""
    seen: set[str] = set()
    for at, name in enumerate(names):
        if not pattern.fullmatch(name):
            raise Wrong(f"Invalid '{where}[{at}].name': string does not match pattern {pattern.pattern!r}: {name!r}")
        if name in seen:
            raise Wrong(f"{where}: names must be unique, {name!r} is there twice")
        seen.add(name)


def check_base64(text: str, where: str) -> bytes:
    """Return the bytes. Raises `Wrong`."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Wrong(f"{where}: invalid base64 data") from None
    if not found:
        raise Wrong(f"{where}: the data is empty")
    return found


def check_picture_url(url: str, where: str) -> None:
    """Refuse what is neither an address nor a data URL of a picture."""
    if url.startswith(("https://", "http://")):
        return
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise Wrong(
            f"Invalid '{where}'. Expected a valid URL or a base64 data URL, but got a value with an invalid format."
        )
    if found[1] not in {"image/png", "image/jpeg", "image/gif", "image/webp"}:
        raise Wrong(f"Invalid '{where}': unsupported media type {found[1]!r}")
    check_base64(found[2], where)


def check_parameters(schema: Any, where: str) -> None:
    """Refuse what cannot describe the arguments of a tool."""
    if not isinstance(schema, dict) or cast(Json, schema).get("type") != "object":
        kind = repr(cast(Json, schema).get("type")) if isinstance(schema, dict) else "None"
        raise Wrong(
            f"Invalid schema for {where}: schema must be a JSON Schema of 'type: \"object\"', got 'type: {kind}'."
        )
    check_schema(schema, where)


def check_schema(schema: Any, where: str) -> None:
    """Refuse what is no JSON Schema."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise Wrong(f"Invalid schema for {where}: {schema!r} is not of type 'object', 'boolean'")
    found = cast(Json, schema)
    kinds: Any = found.get("type", [])
    for kind in cast("list[Any]", kinds if isinstance(kinds, list) else [kinds]):
        if kind not in _TYPES:
            raise Wrong(f"Invalid schema for {where}: {kind!r} is not one of the types")
    if not isinstance(found.get("required", []), list) or not isinstance(found.get("enum", []), list):
        raise Wrong(f"Invalid schema for {where}: 'required' and 'enum' are lists")
    if kinds == "array" and "items" not in found and "prefixItems" not in found:
        raise Wrong(f"Invalid schema for {where}: array schema missing items.")
    for name, part in parts_of(found):
        check_schema(part, f"{where}.{name}")


def parts_of(schema: Json) -> list[tuple[str, Any]]:
    """Return the schemas directly within a schema, each with its place."""
    found: list[tuple[str, Any]] = []
    for group in _UNDER:
        inner = schema.get(group, {})
        if not isinstance(inner, dict):
            raise Wrong(f"Invalid schema: {group!r} must be an object, got {inner!r}")
        found += [(f"{group}.{name}", part) for name, part in cast(Json, inner).items()]
    for group in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner = schema.get(group, [])
        if not isinstance(inner, list):
            raise Wrong(f"Invalid schema: {group!r} must be a list, got {inner!r}")
        found += [(f"{group}.{at}", part) for at, part in enumerate(cast("list[Any]", inner))]
    found += [(group, schema[group]) for group in ("items", "additionalProperties") if group in schema]
    return found


def check_closed(schema: Any, where: str, *, all_required: bool) -> None:
    """Refuse objects that are open; strict schemas of some services demand every property as well."""
    if not isinstance(schema, dict):
        return
    found = cast(Json, schema)
    if found.get("type") == "object":
        if found.get("additionalProperties") is not False:
            raise Wrong(
                f"Invalid schema for {where}: 'additionalProperties' is required to be supplied and to be false."
            )
        missing = [name for name in cast(Json, found.get("properties", {})) if name not in found.get("required", [])]
        if all_required and missing:
            raise Wrong(
                f"Invalid schema for {where}: 'required' is required to be supplied and to be an array including every "
                f"key in properties. Missing {missing[0]!r}."
            )
    for name, part in parts_of(found):
        check_closed(part, f"{where}.{name}", all_required=all_required)


def sealed(text: str) -> str:
    """Return a signature that holds a text, so that it is recognised after a restart too."""
    raw = text.encode()
    return base64.b64encode(hashlib.sha256(b"operant" + raw).digest()[:12] + raw).decode()


def opened(signature: str) -> str | None:
    """Return the text of a signature, None for one that `sealed` did not give."""
    try:
        raw = base64.b64decode(signature, validate=True)
        text = raw[12:].decode()
    except (binascii.Error, ValueError):
        return None
    return text if sealed(text) == signature else None


def names_of(values: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of some things."""
    return [str(value.get("name", "")) for value in values]
