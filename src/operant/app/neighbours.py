"""Extensions of a person's own: folders and files below `extensions/` in the home.

    extensions/careful.py            extension = Extension(name="careful", setup=":setup"), and the function below it
    extensions/careful/__init__.py   the same as a package; `setup=".guard:setup"` is in its module `guard`

They run inside the process, as trusted as the program itself: only the owner can write there.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import sys
import types
from collections.abc import Callable
from pathlib import Path

import msgspec

from operant.app.extensions import UNLOADABLE, Found, Unusable, describe_fault, find_extensions
from operant.sdk.extension import Extension

FOLDER = "extensions"

_log = logging.getLogger("operant.extensions")


def find_all(home: Path, find: Callable[[], Found] = find_extensions) -> Found:
    """Return all extensions: those that are installed, and those of a home; an installed one keeps its name."""
    installed = find()
    own = _own(home / FOLDER)
    taken = {one.name for one in installed.extensions}
    twice = tuple(
        Unusable(name=one.name, reason=f"there is already an extension {one.name}")
        for one in own.extensions
        if one.name in taken
    )
    fresh = tuple(one for one in own.extensions if one.name not in taken)
    return Found(extensions=(*installed.extensions, *fresh), unusable=(*installed.unusable, *own.unusable, *twice))


def is_there(home: Path, name: str) -> bool:
    """Tell whether a home has the file or folder of such an extension, also when it cannot be loaded."""
    return name in _names(home / FOLDER)


def _own(folder: Path) -> Found:
    try:
        names = sorted(_names(folder))
    except OSError:
        return Found(extensions=())
    package = _package(folder)
    extensions: list[Extension] = []
    unusable: list[Unusable] = []
    for name in names:
        module = f"{package}.{name}"
        try:
            declared = getattr(importlib.import_module(module), "extension", None)
        except UNLOADABLE as error:
            _log.info("extension %s cannot be declared", name, exc_info=True)  # the reason is told; this says where
            unusable.append(Unusable(name=name, reason=describe_fault(error)))
            continue
        if isinstance(declared, Extension):
            extensions.append(_placed(declared, module))
        else:
            what = "it names no `extension`" if declared is None else "what it declares is not an Extension"
            unusable.append(Unusable(name=name, reason=what))
    return Found(extensions=tuple(extensions), unusable=tuple(unusable))


def _names(folder: Path) -> set[str]:
    found = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    return {name for name in found if name.isidentifier() and not name.startswith("_")}


def _package(folder: Path) -> str:
    """Make the package below which a home's extensions are imported; each home has its own."""
    name = f"operant_extensions_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        package = types.ModuleType(name, "Extensions of a home.")
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    importlib.invalidate_caches()
    return name


def _placed(extension: Extension, module: str) -> Extension:
    """Let `:setup` and `.guard:setup` mean a place beside the declaration."""

    def absolute(path: str) -> str:
        return f"{module}{path}" if path.startswith((":", ".")) else path

    return msgspec.structs.replace(extension, setup=absolute(extension.setup), settings=absolute(extension.settings))
