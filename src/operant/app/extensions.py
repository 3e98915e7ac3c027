"""Find the extensions: the folders of `operant.ext`, and what other distributions offer."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from operant.kernel.errors import Broken
from operant.kernel.records import Record
from operant.sdk.extension import Extension

GROUP = "operant.extensions"
"""Entry point group in which other distributions name their `Extension`."""

UNLOADABLE = (
    *(ImportError, SyntaxError, AttributeError, LookupError, NameError, OSError, TypeError, ValueError),
    *(ArithmeticError, AssertionError, RuntimeError),
)
"""What importing a broken module raises."""

_log = logging.getLogger("operant.extensions")


class Unusable(Record):
    """An extension that cannot be used, and why."""

    name: str
    reason: str


class Found(Record):
    """What there is: usable extensions by name, and those that are not."""

    extensions: tuple[Extension, ...]
    unusable: tuple[Unusable, ...] = ()


def find_extensions(package: str = "operant.ext", group: str = GROUP) -> Found:
    """Import the declaration of every extension; their code is imported when they start."""
    found: dict[str, Extension] = {}
    unusable: list[Unusable] = []
    for name, load in [*_folders(package), *_entry_points(group)]:
        try:
            extension = load()
        except UNLOADABLE as error:
            _log.info("extension %s cannot be declared", name, exc_info=True)  # the reason is told; this says where
            unusable.append(Unusable(name=name, reason=describe_fault(error)))
            continue
        if not isinstance(extension, Extension):
            unusable.append(Unusable(name=name, reason="what it declares is not an Extension"))
        elif extension.name in found:
            unusable.append(Unusable(name=name, reason=f"there is already an extension {extension.name}"))
        else:
            found[extension.name] = extension
    return Found(extensions=tuple(found[name] for name in sorted(found)), unusable=tuple(unusable))


def load_name(path: str) -> Any:
    """Return what `module:name` stands for. Raises `Broken`."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except UNLOADABLE as error:
        raise Broken(f"{path} cannot be loaded: {error}.") from error


def section_of(extension: Extension) -> str:
    """Return the key of an extension's settings in the configuration."""
    return extension.section or extension.name


def describe_fault(error: BaseException) -> str:
    """Say in one line what was raised."""
    words = str(error).splitlines()
    return f"{type(error).__name__}: {words[0]}" if words else type(error).__name__


def _folders(package: str) -> Sequence[tuple[str, Any]]:
    import pkgutil

    def loader(module: str) -> Any:
        return lambda: importlib.import_module(module).extension

    paths: Any = importlib.import_module(package).__path__
    return [(entry.name, loader(f"{package}.{entry.name}")) for entry in pkgutil.iter_modules(paths) if entry.ispkg]


def _entry_points(group: str) -> Sequence[tuple[str, Any]]:
    if not _offered(group):
        return []
    from importlib.metadata import entry_points

    return [(entry.name, entry.load) for entry in entry_points(group=group)]


def _offered(group: str) -> bool:
    """Tell whether any distribution names the group; asking `importlib.metadata` for nothing takes 15 ms."""
    heading = f"[{group}]"
    listed = (path for folder in sys.path for path in Path(folder or ".").glob("*-info/entry_points.txt"))
    return any(heading in path.read_text(errors="replace") for path in listed)
