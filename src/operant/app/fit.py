"""Fit plain data to a type and collect everything that does not, each with its place."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from operant.kernel.records import Record
from operant.kit.nearest import nearest
from operant.kit.secret import Secret
from operant.kit.yaml import KeyPath

Find = Callable[[str], str | None]
"""Return the value of a variable, or None when it is not set."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Misfit(Record):
    """One thing that is wrong, and where."""

    path: KeyPath
    sentence: str

    def line(self) -> str:
        """Say it with the key in front."""
        return ".".join(map(str, self.path)) + ": " + self.sentence if self.path else self.sentence


class Fitting:
    """Check data against types; `${VAR}` in texts is replaced on the way.

    `texts` are the words behind values that were read from the environment, for keys that want text.
    """

    def __init__(self, find: Find, texts: Mapping[KeyPath, str]) -> None:
        self.misfits: list[Misfit] = []
        self.secrets: list[Secret] = []
        self._find = find
        self._texts = texts

    def fit(self, value: Any, kind: Any, path: KeyPath) -> Any:
        """Return the value as plain data with its variables replaced; what is wrong is added to `misfits`."""
        bare = _bare(kind, value)
        if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            return self._struct(value, bare, path)
        origin = get_origin(bare)
        if origin is dict:
            return self._mapping(value, get_args(bare)[1], path)
        if origin in (list, tuple, set, frozenset) and isinstance(value, list):
            of = get_args(bare)[0]
            return [self.fit(item, of, (*path, index)) for index, item in enumerate(cast("list[Any]", value))]
        if value is None and bare is not kind and _takes_none(kind):
            return None
        return self._leaf(value, bare, kind, path)

    def _wrong(self, path: KeyPath, sentence: str) -> None:
        self.misfits.append(Misfit(path=path, sentence=sentence))

    def _items(self, value: Any, path: KeyPath) -> list[tuple[str, Any]]:
        if value is None:
            return []
        if not isinstance(value, dict):
            self._wrong(path, f"expected keys and values, got {_name_of(value)}")
            return []
        items: list[tuple[str, Any]] = []
        for key, item in cast("dict[Any, Any]", value).items():
            if isinstance(key, str):
                items.append((key, item))
            else:
                self._wrong((*path, str(key)), f"a key must be text, this is {_name_of(key)}; put it in quotes")
        return items

    def _struct(self, value: Any, kind: type[msgspec.Struct], path: KeyPath) -> dict[str, Any]:
        before = len(self.misfits)
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        fitted: dict[str, Any] = {}
        for key, item in self._items(value, path):
            if key in fields:
                fitted[key] = self.fit(item, fields[key].type, (*path, key))
            else:
                self._wrong((*path, key), unknown_key(key, fields))
        for key, field in fields.items():
            if field.required and key not in fitted:
                self._wrong(path, f"{key} is missing")
        if len(self.misfits) == before:
            try:
                make(fitted, kind)
            except msgspec.ValidationError as error:
                self._wrong(path, _plain(error))
        return fitted

    def _mapping(self, value: Any, kind: Any, path: KeyPath) -> dict[str, Any]:
        return {key: self.fit(item, kind, (*path, key)) for key, item in self._items(value, path)}

    def _leaf(self, value: Any, bare: Any, kind: Any, path: KeyPath) -> Any:
        if bare is Secret:
            return self._secret(self._texts.get(path, value), path)
        if isinstance(value, str):
            value = self._replaced(value, path)
        if get_origin(bare) is Literal and value not in get_args(bare):
            known = [str(one) for one in get_args(bare)]
            self._wrong(path, f"expected one of {', '.join(known)}, got {value!r}{_meant(str(value), known)}")
            return value
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            if path in self._texts and isinstance(bare, type) and issubclass(bare, str):
                return self._replaced(self._texts[path], path)
            self._wrong(path, _plain(error))
        return value

    def _replaced(self, text: str, path: KeyPath) -> str:
        def put(match: re.Match[str]) -> str:
            value = self._find(match[1])
            if value is None:
                self._wrong(path, f"the variable {match[1]} is not set")
            return value or ""

        return _VARIABLE.sub(put, text)

    def _secret(self, value: Any, path: KeyPath) -> Secret | None:
        """Make a secret; one whose variable is not set is empty, so that what needs it says so when it does."""
        if value is None:
            return None
        if not isinstance(value, str):
            self._wrong(path, f"expected text, got {_name_of(value)}")
            return Secret()
        missing = [name for name in _VARIABLE.findall(value) if not self._find(name)]
        name = ", ".join(missing or _VARIABLE.findall(value))
        if missing:
            return Secret("", name)
        revealed = _VARIABLE.sub(lambda match: self._find(match[1]) or "", value)
        secret = Secret(revealed, name)
        self.secrets.append(secret)
        return secret


def make(data: Any, kind: Any) -> Any:
    """Make a record of fitted data. Raises `msgspec.ValidationError`."""
    return msgspec.convert(data, kind, dec_hook=_secret_hook)


def unknown_key(key: str, known: Mapping[str, object]) -> str:
    """Say that a key is not known, and which one was probably meant."""
    return f"there is no such key{_meant(key, list(known)) or '; known are ' + ', '.join(sorted(known))}"


def _meant(word: str, known: list[str]) -> str:
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def _secret_hook(kind: type, value: Any) -> Any:
    if kind is Secret and isinstance(value, Secret):
        return value
    raise NotImplementedError(f"{kind.__name__} is not a type for settings")


def _bare(kind: Any, value: Any) -> Any:
    """Strip what surrounds a type: annotations, and the alternatives that the value cannot be."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    options = [one for one in get_args(kind) if one is not types.NoneType]
    if len(options) == 1:
        return _bare(options[0], value)
    if isinstance(value, dict):
        return next((one for one in (_bare(one, value) for one in options) if _holds_keys(one)), kind)
    return kind


def _holds_keys(kind: Any) -> bool:
    return get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))


def _takes_none(kind: Any) -> bool:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return types.NoneType in get_args(kind)


def _plain(error: msgspec.ValidationError) -> str:
    text = str(error).replace("`", "").replace(" - at $", " at ").removesuffix(" at ")
    return text[:1].lower() + text[1:]


def _name_of(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
