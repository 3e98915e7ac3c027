"""The one place that decides what a command of an agent may see and reach."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import operant
from operant.app.commands import VARIABLE, Reach, ShellCommands
from operant.app.config import SandboxSettings
from operant.app.home import Home, make_directory
from operant.app.means import Means, find_means
from operant.app.walls import PORT, bubblewrapped, landlocked
from operant.kernel.errors import Unavailable
from operant.kernel.ports import CallContext
from operant.kernel.records import Agent
from operant.kit import sandbox
from operant.kit.allowlist import Rules, Verdict
from operant.kit.egress import Denied, Egress
from operant.kit.likeness import likeness
from operant.kit.proxy import Proxy
from operant.kit.sandbox import Policy, is_below
from operant.sdk.extension import Command, Launch

Environment = Callable[[str, str, str, dict[str, str]], Awaitable[dict[str, str]]]

_PATH = "/usr/local/bin:/usr/bin:/bin"
_MOST_SCRATCH = 2**30
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_ELSEWHERE = frozenset(("SHELL", "OLDPWD", "PWD"))

_log = logging.getLogger("operant.sandbox")


class Confinement:
    """Make the sandboxes of a system."""

    def __init__(self, settings: SandboxSettings, home: Home, egress: Egress) -> None:
        self._settings = settings
        self.home = home
        self._egress = egress
        self.commands = ShellCommands(home.state)
        self._means: Means | None = None
        self._finding = asyncio.Lock()
        self._served = 0
        self._etc = ""

    async def means(self) -> Means:
        """Return what makes sandboxes here; found by trying it, once."""
        async with self._finding:
            if self._means is None:
                self._means = await find_means(self._settings.by)
                if self._means.bubblewrap:
                    self._etc = str(await asyncio.to_thread(self._furnish))
            return self._means

    @asynccontextmanager
    async def confine(self, call: CallContext, command: Command, environment: Environment) -> AsyncGenerator[Launch]:
        """Put the agent's sandbox around a command while the context is open.

        Raises `Unavailable` where there is none to put: a command is never run without the sandbox it must have.
        """
        agent = call.agent
        env = dict(command.env)
        if not command.private:
            env = await environment(call.session, agent.name, command.tool, env)
        if not agent.sandbox and not command.inert:
            async with self._reach(call, command) as reach:
                yield Launch(argv=command.argv, cwd=command.cwd, env=_reaching(env, reach))
            return
        means = await self.means()
        if means.kind == "none":
            raise Unavailable(f"Nothing here can confine a command: {means.why}", means.remedy)
        if command.socket and means.kind == "landlock":
            raise Unavailable(f"Landlock alone cannot confine what needs a socket: {means.why}", means.remedy)
        network = () if command.inert or means.kind == "landlock" else agent.network
        async with self._proxy(agent, network) as socket, self._reach(call, command, means.kind) as reach:
            policy = self._policy(agent, command, env, socket)
            if reach is not None:
                policy = replace(policy, line=reach.socket, commands=reach.folders)
                reach = Reach(tuple(f"{sandbox.COMMANDS}/{Path(one).name}" for one in reach.folders), sandbox.LINE)
            async with self._walls(means, policy, command, _reaching(env, reach)) as launch:
                yield launch

    @asynccontextmanager
    async def _reach(self, call: CallContext, command: Command, kind: str = "") -> AsyncGenerator[Reach | None]:
        """Let the commands of extensions be reached by the tools of an agent; Landlock lets nobody at a socket."""
        if command.inert or command.private or kind == "landlock":
            yield None
            return
        async with self.commands.reach(call) as reach:
            yield reach

    def _furnish(self) -> Path:
        """Make the `/etc` of sandboxes, and clear away sockets of a system that was killed."""
        for left in self._directory("proxies").glob("*.sock"):
            left.unlink(missing_ok=True)
        return likeness(self._directory())

    def _walls(
        self, means: Means, policy: Policy, command: Command, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Launch]:
        inner = Launch(argv=command.argv, cwd=command.cwd, env=_inside(policy, env))
        if means.bubblewrap is None:
            return landlocked(policy, inner)
        return bubblewrapped(means.bubblewrap, policy, inner, next(iter(policy.writable), ""))

    def _policy(self, agent: Agent, command: Command, env: Mapping[str, str], socket: str) -> Policy:
        """Say what a command may see; makes the directories that it has of its own."""
        places = (agent.workspace, str(self.home.shared), *map(_expanded, self._settings.writable))
        places = command.writable if command.private else places
        work = tuple(path for path in places if path and Path(path).is_dir())
        memory = self._settings.memory_mb * 2**20
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", agent.name)
        return Policy(
            readable=(*self._readable(env), *command.readable, *(work if command.inert else ())),
            writable=() if command.inert else work,
            hidden=(str(self.home.path),),
            home="" if command.inert or command.private else str(self._directory("agents", name, "home")),
            scratch="" if command.inert or command.private else str(self._directory("agents", name, "tmp")),
            etc=self._etc,
            socket=socket,
            line=command.socket,
            terminal=command.terminal,
            memory_bytes=memory,
            scratch_bytes=min(memory, _MOST_SCRATCH),
            processes=self._settings.processes,
        )

    def _readable(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Name what is readable beside the system: what is set, and the Python that runs us, for tools in Python."""
        python = (sys.prefix, sys.base_prefix, str(Path(operant.__file__).parent))
        certificates = (env[name] for name in _CERTIFICATES if env.get(name, "").startswith("/"))
        found = dict.fromkeys((*map(_expanded, self._settings.readable), *python, *certificates))
        return tuple(path for path in found if not is_below(path, "/usr") and path != "/")

    def _directory(self, *names: str) -> Path:
        path = self.home.state
        make_directory(path)
        for name in ("sandbox", *names):
            path = path / name
            make_directory(path)
        return path

    @asynccontextmanager
    async def _proxy(self, agent: Agent, network: tuple[str, ...]) -> AsyncGenerator[str]:
        """Serve what an agent may reach, and yield the socket; an empty name when it may reach nothing."""
        if not network:
            yield ""
            return
        try:
            rules = Rules(None if "*" in network else network)
        except Denied as error:
            raise Unavailable(f"The network of agent {agent.name} is set wrongly: {error}") from error
        self._served += 1
        path = self._directory("proxies") / f"{os.getpid()}-{self._served}.sock"
        async with Proxy(self._egress, rules, on_verdict=_judged).serving_unix(path):
            yield str(path)


def _expanded(path: str) -> str:
    return str(Path(path).expanduser())


def _inside(policy: Policy, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment as it is right inside: who one is there, and no program from a writable place."""
    places = [place for place in env.get("PATH", _PATH).split(":") if place.startswith("/")]
    safe = ":".join(place for place in places if not any(is_below(place, top) for top in policy.writable))
    kept = {name: value for name, value in env.items() if name not in _ELSEWHERE}
    if policy.line:
        kept = {name: sandbox.LINE if value == policy.line else value for name, value in kept.items()}
    own = {"HOME": sandbox.HOME, "TMPDIR": "/tmp", "USER": "agent", "LOGNAME": "agent"}  # noqa: S108 - its own
    return {**kept, **own, "PATH": safe or _PATH, **(_proxied() if policy.socket else {})}


def _reaching(env: dict[str, str], reach: Reach | None) -> dict[str, str]:
    """Put the commands of extensions on PATH: our own first, the others last, where they hide nothing."""
    if reach is None:
        return env
    first, last = reach.folders
    return {**env, "PATH": f"{first}:{env.get('PATH', _PATH)}:{last}", VARIABLE: reach.socket}


def _proxied() -> dict[str, str]:
    address = f"http://127.0.0.1:{PORT}"
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    local = "localhost,127.0.0.1,::1"
    return {**dict.fromkeys(names, address), "no_proxy": local, "NO_PROXY": local, "NODE_USE_ENV_PROXY": "1"}


def _judged(verdict: Verdict) -> None:
    if not verdict.allowed:
        _log.warning("a sandboxed command was kept from %s:%d: %s", verdict.host, verdict.port, verdict.reason)
