"""All servers of the home: who is connected, and what an agent gets of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from weakref import WeakSet

from operant.ext.mcp.access import LOGINS, Login, Logins
from operant.ext.mcp.declared import FILE, Declared, read_declared
from operant.ext.mcp.link import Link
from operant.ext.mcp.pins import Pins
from operant.ext.mcp.remote import RemoteTool
from operant.ext.mcp.seen import name_of
from operant.ext.mcp.settings import McpSettings
from operant.sdk import Agent, Host, NotFound, Tool

FIRST_S = 5.0
"""Seconds that the first message waits for servers that are being connected to; once a server, whatever it does."""


class Links:
    """The connections, each in a task of its own, and the toolbox made of them."""

    def __init__(self, host: Host, settings: McpSettings) -> None:
        self._host = host
        self._settings = settings
        self.file = Path(host.home) / FILE
        self.pins = Pins(Path(host.state))
        self.logins = Logins(Path(host.state) / LOGINS, Login, "operant mcp login is wanted again then")
        self.all: dict[str, Link] = {}
        self.extra: Mapping[str, Tool] = {}
        """Tools for resources and prompts, offered while a server has some."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tools: dict[str, dict[str, Tool]] | None = None
        self._group: asyncio.TaskGroup | None = None
        self._stamp = 0
        self._awaited = WeakSet[Link]()

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[None]:
        """Hold the connections while the context is open; none is made before it is wanted."""
        self.read()
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for task in self._tasks.values():
                    task.cancel()

    # ------------------------------------------------------------------ which there are

    def read(self) -> None:
        """Read the configuration; servers that are as they were keep their connection. Raises `Invalid`."""
        declared = read_declared(self.file.parent, self._settings.servers, self._host.variable)
        self._stamp = _stamp(self.file)
        for name in [name for name, link in self.all.items() if declared.get(name) != link.server]:
            self._drop(name)
        for name, server in sorted(declared.items()):
            if name not in self.all:
                self.all[name] = Link(server, self._host, self.pins, self.logins, self.changed)
        self.changed()

    def need(self, name: str) -> Link:
        """Return a server. Raises `NotFound`."""
        if name not in self.all:
            known = ", ".join(sorted(self.all)) or "none"
            raise NotFound(f"There is no MCP server {name!r}.", f"There are: {known}.")
        return self.all[name]

    def start(self) -> None:
        """Begin to connect to all servers."""
        for link in self.all.values():
            self.begin(link)

    def begin(self, link: Link) -> None:
        """Begin to connect to a server."""
        name = link.server.name
        if self._group is not None and name not in self._tasks:
            self._tasks[name] = self._group.create_task(link.run())

    async def first(self) -> None:
        """Connect before a turn, and wait a little for those that nobody has waited for yet."""
        if _stamp(self.file) != self._stamp:
            self.read()
        self.start()
        fresh = [link for link in self.all.values() if link.state == "waiting" and link not in self._awaited]
        self._awaited.update(fresh)
        if fresh:
            await asyncio.gather(*(link.tried(FIRST_S) for link in fresh))

    def _drop(self, name: str) -> None:
        del self.all[name]
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    # ------------------------------------------------------------------ what an agent gets

    def changed(self) -> None:
        """Make the tools anew when they are asked for next."""
        self._tools = None

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, Tool]:
        """Return an agent's tools of all servers."""
        if self._tools is None:
            self._tools = self._made()
        mine = {
            name: tool
            for server, tools in self._tools.items()
            if may_use(agent.name, self.all[server].server)
            for name, tool in tools.items()
        }
        some = any(may_use(agent.name, one.server) and has_things(one) for one in self.all.values())
        return {**mine, **self.extra} if some else mine

    def _made(self) -> dict[str, dict[str, Tool]]:
        """Make the tools that are as they were approved; the first one of a name has it."""
        offered = {
            name: [one for one in link.listing.tools if not one.refused and link.standing(one) == "offered"]
            for name, link in self.all.items()
        }
        deferred = sum(map(len, offered.values())) > self._settings.listed
        taken: set[str] = set()
        made: dict[str, dict[str, Tool]] = {}
        for server, seen in offered.items():
            made[server] = {}
            for one in seen:
                name = name_of(server, one.tool)
                if name not in taken:
                    made[server][name] = RemoteTool(self.all[server], one, self._host.blobs, deferred=deferred)
                    taken.add(name)
        return made


def may_use(agent: str, server: Declared) -> bool:
    """Tell whether an agent has a server."""
    return any(fnmatchcase(agent, pattern) for pattern in server.settings.agents)


def has_things(link: Link) -> bool:
    """Tell whether a server has resources or prompts."""
    return bool(link.listing.resources or link.listing.prompts)


def _stamp(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
