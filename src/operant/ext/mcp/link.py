"""The connection to one server: made when it is wanted, looked after, and made again when it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast

from operant.ext.mcp.access import Access, Logins
from operant.ext.mcp.child import Complaints, talking
from operant.ext.mcp.declared import Declared
from operant.ext.mcp.listing import Listing, look
from operant.ext.mcp.pins import Pins, Standing
from operant.ext.mcp.seen import Seen
from operant.kit.text import plain
from operant.sdk import Host, Missing, OperantError, Unavailable

if TYPE_CHECKING:
    from mcp import Client

CONNECT_S = 90.0
"""Seconds until a server answers: some are downloaded first."""
CALLER_S = 15.0
"""Seconds that a call waits for a connection that is being made."""
_SHORTEST_S, _LONGEST_S = 1.0, 300.0

State = Literal["off", "waiting", "connected", "failed"]
News = Literal["changed", "over"]

_log = logging.getLogger("operant.mcp")


class Link:
    """One server; `run` is the task that its connection lives in, and everything else asks it."""

    def __init__(self, server: Declared, host: Host, pins: Pins, logins: Logins, changed: Callable[[], None]) -> None:
        self.server = server
        self.access = Access(server, logins, self._refused)
        self.listing = Listing()
        self.state: State = "off" if server.settings.disabled else "waiting"
        self.sentence = server.fault
        self.protocol = ""
        self.version = ""
        self._host = host
        self._pins = pins
        self._changed = changed
        self._client: Client | None = None
        self._news: asyncio.Queue[News] = asyncio.Queue()
        self._tried = asyncio.Event()
        self._again = asyncio.Event()
        self._complaints = Complaints()
        self._held = False

    # ------------------------------------------------------------------ those who ask

    async def client(self, wait_s: float = CALLER_S) -> Client:
        """Return the connection. Raises `Unavailable` where there is none in time."""
        if self._client is None and not self.server.fault:
            if self.state == "failed":
                self._tried.clear()
                self._again.set()
            await self.tried(wait_s)
        if self._client is None:
            raise Unavailable(f"The MCP server {self.server.name} cannot be used: {self.sentence or 'not connected'}.")
        return self._client

    async def tried(self, wait_s: float) -> None:
        """Wait until the connection has come about or has failed, but not longer than so many seconds."""
        try:
            async with asyncio.timeout(wait_s):
                await self._tried.wait()
        except TimeoutError:
            return

    def renew(self) -> None:
        """Connect anew."""
        self._tried.clear()
        self._again.set()
        self._news.put_nowait("over")

    def lost(self) -> None:
        """Note that the connection is dead."""
        if self._client is not None:
            self._client, self.state = None, "waiting"
            self._tried.clear()
            self._again.set()
            self._news.put_nowait("over")

    def _refused(self, again: bool) -> None:
        if again:
            self._tried.clear()
            self._again.set()
        self.lost()

    # ------------------------------------------------------------------ the connection

    async def run(self) -> None:
        """Keep the server connected until cancelled; whatever it does stays here."""
        if self.state == "off":
            return
        wait = _SHORTEST_S
        while not self.server.fault:
            self._again.clear()
            done = (await asyncio.gather(self._session(), return_exceptions=True))[0]
            held = self._held
            self._fail(done)
            wait = _SHORTEST_S if held else min(wait * 2, _LONGEST_S)
            await self._rest(wait)
        self._fail(None)

    async def _session(self) -> None:
        """Hold one connection from its beginning to its end."""
        if find_spec("mcp") is None:
            raise Missing("MCP needs a package that is not there.", "pip install 'operant[mcp]'")
        self._news = asyncio.Queue()
        self.access.refusal = ""
        self._held = False
        async with asyncio.timeout(CONNECT_S) as patience, self._opened() as client:
            self.protocol = client.protocol_version
            info = client.server_info
            self.version = plain(f"{info.name} {info.version}")[:80].strip() if info is not None else ""
            await self._look(client)
            patience.reschedule(None)
            self._client, self.state, self.sentence = client, "connected", ""
            self._held = True
            self._tried.set()
            self._changed()
            await self._attend(client)

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Client]:
        from mcp import Client

        if self.server.is_http:
            from operant.ext.mcp.dial import dialled
            from operant.ext.mcp.oauth import credentials

            transport: Any = dialled(self.access, self._host, credentials(self.access))
        else:
            self._complaints = Complaints()
            transport = talking(self.server, self._host, self._complaints, self.lost)
        async with Client(
            transport,
            message_handler=self._heard,
            read_timeout_seconds=self.server.settings.timeout,
            client_info=_who(),
            cache=None,
        ) as client:
            yield client

    async def _attend(self, client: Client) -> None:
        """Look again whenever the server says that something changed; return when it has gone."""
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(client))
            while await self._news.get() != "over":
                await self._look(client)
                self._changed()
            watching.cancel()

    async def _watch(self, client: Client) -> None:
        """Hear of changes from a server of the newer protocol, which tells only those who ask."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        try:
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as events:
                async for _ in events:
                    self._news.put_nowait("changed")
        except SubscriptionLost:
            self._news.put_nowait("over")
        except (ListenNotSupportedError, MCPError, TimeoutError) as error:
            _log.debug("%s tells of no changes: %s", self.server.name, error)

    async def _heard(self, message: Any) -> None:
        """Hear of changes from a server of the older protocol, and of the end of a stream."""
        if type(message).__name__.endswith("ListChangedNotification"):
            self._news.put_nowait("changed")

    async def _look(self, client: Client) -> None:
        listing = await look(client, self.server.settings)
        self._pins.meet(self.server, listing.tools)
        self.listing = listing
        held = [one.tool for one in listing.tools if not one.refused and self.standing(one) != "offered"]
        if held:
            _log.warning(
                "%s of MCP server %s changed and are not offered until `operant mcp approve %s`",
                f"{len(held)} tools" if len(held) > 1 else f"the tool {held[0]!r}",
                self.server.name,
                self.server.name,
            )

    def standing(self, one: Seen) -> Standing:
        """Tell whether a tool is as it was approved."""
        return self._pins.standing(self.server, one)

    def standing_of(self, tool: str) -> str:
        """Tell the same by its name, of the tool as it is now."""
        seen = next((one for one in self.listing.tools if one.tool == tool), None)
        return "gone" if seen is None else self.standing(seen)

    # ------------------------------------------------------------------ the end

    def _fail(self, done: BaseException | None) -> None:
        self._client, self.state = None, "failed"
        self.sentence = self.server.fault or self.access.refusal or why(done, self._complaints.last)
        if self._again.is_set() and not self.server.fault:
            return  # somebody wants it anew, and waits for what comes of that
        _log.warning("MCP server %s: %s", self.server.name, self.sentence)
        self._tried.set()

    async def _rest(self, seconds: float) -> None:
        """Wait before the next try; who wants the server now shortens it."""
        try:
            async with asyncio.timeout(seconds):
                await self._again.wait()
        except TimeoutError:
            return
        self._tried.clear()


def _who() -> Any:
    from mcp.types import Implementation

    return Implementation(name="operant", version="1")


def why(error: BaseException | None, complaint: str = "") -> str:
    """Say in one sentence why a connection ended."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    said = f" It said: {plain(complaint)}" if complaint else ""
    if error is None:
        return f"the connection ended.{said}"
    if isinstance(error, OperantError):
        return f"{error.line()}{said}"
    if isinstance(error, TimeoutError):
        return f"it did not answer in time.{said}"
    words = plain(" ".join(str(error).split()))[:300] or type(error).__name__
    words = {"Connection closed": "it ended before it answered"}.get(words, words)
    return f"{words.removesuffix('.')}.{said}"
