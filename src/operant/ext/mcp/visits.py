"""Logins under way: from the address for a person's browser to what the browser brought back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from operant.ext.mcp.access import Access
from operant.ext.mcp.link import why
from operant.kit.text import plain
from operant.sdk import Host, Invalid, NotFound, Unavailable

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

VISIT_S = 900.0
"""Seconds that a person has."""
BEGIN_S = 60.0
LOCAL = ("127.0.0.1", "localhost", "::1")


class Visit:
    """One login; it lives as long as the connection that waits for it."""

    def __init__(self, access: Access, redirect: str) -> None:
        self.access = access
        self.redirect = redirect
        self.address = ""
        self.asked = asyncio.Event()
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.failure: BaseException | None = None

    async def run(self, host: Host) -> None:
        """Connect, and wait for the person where the server wants that; whatever comes of it stays here."""
        self.failure = (await asyncio.gather(self._connected(host), return_exceptions=True))[0]

    async def _connected(self, host: Host) -> None:
        from mcp import Client

        from operant.ext.mcp.dial import dialled
        from operant.ext.mcp.oauth import of_visit

        auth = of_visit(self.access, self.redirect, self._show, self._answered)
        async with (
            asyncio.timeout(VISIT_S),
            Client(dialled(self.access, host, auth, visiting=True), cache=None) as client,
        ):
            await client.list_tools()

    async def _show(self, address: str) -> None:
        if self.address:
            raise Unavailable("it wants another login on top.", "Say it again.")
        parts = urlsplit(address)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL):
            raise Unavailable(f"Its login is at {plain(address)[:200]!r}, which nobody should be sent to.")
        self.address = address
        self.asked.set()

    async def _answered(self) -> AuthorizationCodeResult:
        from operant.ext.mcp.oauth import result

        return result(await self.answer)

    def take(self, answer: str) -> None:
        """Take what the browser brought back. Raises `Invalid` for that of another login."""
        found = {name: values[-1] for name, values in parse_qs(urlsplit(answer).query).items()}
        sent = parse_qs(urlsplit(self.address).query).get("state", [""])[-1]
        if not sent or found.get("state") != sent or not ("code" in found or "error" in found):
            raise Invalid(
                "That is not what this login waits for.", "Give the whole address that the browser was sent to last."
            )
        if self.answer.done():
            return
        if "error" in found:
            said = plain(f"{found['error']} {found.get('error_description', '')}".strip())[:300]
            self.answer.set_exception(Unavailable(f"The login was refused: {said}."))
        else:
            self.answer.set_result(answer)


class Visits:
    """The logins under way, one a server."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._group: asyncio.TaskGroup | None = None
        self._open: dict[str, tuple[Visit, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[None]:
        """Hold them while the context is open."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for _, task in self._open.values():
                    task.cancel()

    async def begin(self, access: Access, redirect: str) -> str:
        """Begin a login and return the address to visit, or nothing where none is wanted. Raises `Unavailable`.

        One that is under way for the same server ends.
        """
        name = access.server.name
        if self._group is None:
            raise Unavailable("The system is about to stop.")
        if name in self._open:
            self._open.pop(name)[1].cancel()
        visit = Visit(access, redirect)
        task = self._group.create_task(visit.run(self._host))
        asked = self._group.create_task(visit.asked.wait())
        await asyncio.wait((task, asked), timeout=BEGIN_S, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if visit.address and not task.done():
            self._open[name] = (visit, task)
            return visit.address
        task.cancel()
        await self._ended(visit, task)
        return ""

    async def finish(self, name: str, answer: str) -> None:
        """End a login with what the browser brought back. Raises `NotFound`, `Invalid`, `Unavailable`."""
        if name not in self._open or self._open[name][1].done():
            raise NotFound(f"No login to {name} is under way.", f"operant mcp login {name}")
        visit, task = self._open[name]
        visit.take(answer)
        await self._ended(visit, task)
        self._open.pop(name, None)

    async def _ended(self, visit: Visit, task: asyncio.Task[None]) -> None:
        await asyncio.wait((task,))
        name = visit.access.server.name
        if task.cancelled():
            raise Unavailable(f"{name} did not say where to log in, in time." if not visit.address else "Given up.")
        if visit.failure is not None:
            raise Unavailable(f"The login to {name} failed: {why(visit.failure)}")
