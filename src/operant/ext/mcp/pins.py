"""What the owner has approved of each server: a digest a tool, kept over restarts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from operant.ext.mcp.declared import Declared
from operant.ext.mcp.seen import Seen
from operant.ext.mcp.shelf import Kept, Shelf

Standing = Literal["offered", "new", "changed"]


class Approved(Kept):
    """The digests of one server's tools."""

    tools: dict[str, str] = {}


class Pins:
    """The approvals."""

    def __init__(self, state: Path) -> None:
        self._shelf = Shelf(state / "pins.json", Approved, "every server is approved anew as it is then")

    def meet(self, server: Declared, seen: Iterable[Seen]) -> None:
        """Approve what a server shows the first time: by naming it, the owner chose it as it is."""
        if self._shelf.of(server) is None:
            self._keep(server, {one.tool: one.digest for one in seen})

    def standing(self, server: Declared, one: Seen) -> Standing:
        """Tell whether a tool is as it was approved."""
        known = self._shelf.of(server)
        if known is None or one.tool not in known.tools:
            return "new"
        return "offered" if known.tools[one.tool] == one.digest else "changed"

    def approve(self, server: Declared, seen: Iterable[Seen]) -> None:
        """Approve tools as they are now; what was approved of others stays."""
        known = self._shelf.of(server)
        before = known.tools if known is not None else {}
        self._keep(server, {**before, **{one.tool: one.digest for one in seen}})

    def forget(self, name: str) -> None:
        """Forget a server."""
        self._shelf.forget(name)

    def _keep(self, server: Declared, tools: dict[str, str]) -> None:
        self._shelf.keep(server, Approved(origin=server.origin, tools=tools))
