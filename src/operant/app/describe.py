"""Turn the types of settings into rows for the documentation."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from operant.kernel.records import Record


class Row(Record):
    """One key as the documentation shows it."""

    key: str
    type: str
    default: str
    sentence: str


def rows(key: str, kind: Any) -> Iterator[Row]:
    """Yield a row for each key below `key`, depth first."""
    bare = _strip(kind)
    if get_origin(bare) is dict and _has_fields(get_args(bare)[1]):
        yield from rows(f"{key}.<name>", get_args(bare)[1])
        return
    if not _has_fields(bare):
        return
    for field in msgspec.structs.fields(bare):
        below = f"{key}.{field.encode_name}"
        if _holds_rows(field.type):
            yield from rows(below, field.type)
        else:
            yield Row(key=below, type=_type_name(field.type), default=_default(field), sentence=_sentence(field.type))


def _holds_rows(kind: Any) -> bool:
    bare = _strip(kind)
    return _has_fields(bare) or (get_origin(bare) is dict and _has_fields(get_args(bare)[1]))


def _has_fields(kind: Any) -> bool:
    bare = _strip(kind)
    return isinstance(bare, type) and issubclass(bare, msgspec.Struct)


def _strip(kind: Any) -> Any:
    """Take annotations and `| None` away."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        options = [one for one in get_args(kind) if one is not types.NoneType]
        return _strip(options[0]) if len(options) == 1 else kind
    return kind


def _type_name(kind: Any) -> str:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_name(one) for one in arguments)
    if origin is Literal:
        return " or ".join(str(one) for one in arguments)
    if origin is dict:
        return f"name: {_type_name(arguments[1])}"
    if origin in (tuple, list, set, frozenset):
        return f"list of {_type_name(arguments[0])}"
    words = {str: "text", int: "whole number", float: "number", bool: "true or false", types.NoneType: "null"}
    return words.get(kind, str(getattr(kind, "__name__", kind)).lower())


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value: Any = field.default if field.default is not msgspec.NODEFAULT else None
    if value is None and field.default_factory is not msgspec.NODEFAULT:
        factory: Any = field.default_factory
        value = factory()
    return msgspec.json.encode(value, enc_hook=repr).decode()


def _sentence(kind: Any) -> str:
    """Return the description nearest to the outside of a type."""
    while get_origin(kind) is Annotated:
        for note in get_args(kind)[1:]:
            if isinstance(note, msgspec.Meta) and note.description:
                return note.description
        kind = get_args(kind)[0]
    return ""
