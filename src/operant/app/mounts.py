"""Which extension answers which path of the gateway."""

from __future__ import annotations

import re

from operant.kernel.errors import Conflict, Invalid
from operant.sdk.mount import Mount

_PATH = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*|/\.well-known)+")
_OWN = ("/api", "/v1", "/page")
"""What lies below these is the gateway's own."""


class Mounts:
    """The mounted paths of a system."""

    def __init__(self) -> None:
        self._by: dict[str, tuple[str, Mount]] = {}

    def add(self, mount: Mount, author: str) -> None:
        """Take a path. Raises `Invalid` for one that is none, `Conflict` for one that is taken."""
        path = mount.path
        if not _PATH.fullmatch(path) or any(_covers(own, path) for own in _OWN) or path == "/.well-known":
            raise Invalid(f"{path!r} cannot be mounted.", "Take a path like /name, not below /api, /v1 or /page.")
        for taken, (by, _) in self._by.items():
            if _covers(taken, path) or _covers(path, taken):
                raise Conflict(f"{author} and {by} both want {taken}.", "Disable one in `extensions.disabled`.")
        self._by[path] = (author, mount)

    def drop(self, author: str) -> None:
        """Forget the paths of an extension that has gone."""
        self._by = {path: one for path, one in self._by.items() if one[0] != author}

    def all(self) -> tuple[Mount, ...]:
        """Return them all."""
        return tuple(mount for _, mount in self._by.values())


def _covers(outer: str, path: str) -> bool:
    return path == outer or path.startswith(outer + "/")
