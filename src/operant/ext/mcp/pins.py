"""What the owner has approved of each server: a digest a tool, kept over restarts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from operant.ext.mcp.declared import Declared
from operant.ext.mcp.seen import Seen
from operant.kit.files import write_private
from operant.sdk import Broken, Record, Unavailable

Standing = Literal["offered", "new", "changed"]


class Approved(Record):
    """The digests of one server's tools; `origin` is the program or address that they were approved of."""

    origin: str
    tools: dict[str, str] = {}


class Pins:
    """The approvals, in a file that only the owner reads."""

    def __init__(self, state: Path) -> None:
        self._file = state / "pins.json"
        self._approved = self._read()

    def meet(self, server: Declared, seen: Iterable[Seen]) -> None:
        """Approve what a server shows the first time: by naming it, the owner chose it as it is."""
        known = self._approved.get(server.name)
        if known is None or known.origin != server.origin:
            self._keep(server, {one.tool: one.digest for one in seen})

    def standing(self, server: Declared, one: Seen) -> Standing:
        """Tell whether a tool is as it was approved."""
        known = self._approved.get(server.name)
        if known is None or one.tool not in known.tools:
            return "new"
        return "offered" if known.tools[one.tool] == one.digest else "changed"

    def approve(self, server: Declared, seen: Iterable[Seen]) -> None:
        """Approve tools as they are now; what was approved of others stays."""
        known = self._approved.get(server.name)
        before = known.tools if known is not None and known.origin == server.origin else {}
        self._keep(server, {**before, **{one.tool: one.digest for one in seen}})

    def forget(self, name: str) -> None:
        """Forget a server."""
        if self._approved.pop(name, None) is not None:
            self._write()

    def _keep(self, server: Declared, tools: dict[str, str]) -> None:
        self._approved[server.name] = Approved(origin=server.origin, tools=tools)
        self._write()

    def _read(self) -> dict[str, Approved]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, Approved])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise Broken(
                f"{self._file} cannot be read: {error}.", "Remove it: every server is approved anew as it is then."
            ) from error

    def _write(self) -> None:
        try:
            write_private(self._file, msgspec.json.encode(self._approved))
        except OSError as error:
            raise Unavailable(f"{self._file} cannot be written: {error.strerror}.") from error
