"""What is kept of each server over restarts, in files that only the owner reads."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from operant.ext.mcp.declared import Declared
from operant.kit.files import write_private
from operant.sdk import Broken, Record, Unavailable


class Kept(Record):
    """What is kept of one server; `origin` is the program or address that it belongs to."""

    origin: str


K = TypeVar("K", bound=Kept)


class Shelf(Generic[K]):
    """One record a server, in a file; that of another program or address of the same name is not given out."""

    def __init__(self, file: Path, kind: type[K], loss: str) -> None:
        self._file = file
        self._kind = kind
        self._loss = loss
        self._all = self._read()

    def of(self, server: Declared) -> K | None:
        """Return what is kept of a server."""
        known = self._all.get(server.name)
        return known if known is not None and known.origin == server.origin else None

    def keep(self, server: Declared, one: K) -> None:
        """Keep this of a server. Raises `Unavailable` where it cannot be written."""
        self._all[server.name] = one
        self._write()

    def forget(self, name: str) -> bool:
        """Forget a server; tell whether there was something. Raises `Unavailable`."""
        known = self._all.pop(name, None)
        if known is not None:
            self._write()
        return known is not None

    def _read(self) -> dict[str, K]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, self._kind])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise Broken(f"{self._file} cannot be read: {error}.", f"Remove it: {self._loss}.") from error

    def _write(self) -> None:
        try:
            write_private(self._file, msgspec.json.encode(self._all))
        except OSError as error:
            raise Unavailable(f"{self._file} cannot be written: {error.strerror}.") from error
