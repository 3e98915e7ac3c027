"""The one place that builds a running system: lock, configuration, extensions, kernel."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from operant import __version__
from operant.app.agents import AgentFiles
from operant.app.config import Config, load_config
from operant.app.confine import Confinement
from operant.app.desk import open_desk
from operant.app.extensions import Found, find_extensions, load_name, section_of
from operant.app.foreign import ForeignHost
from operant.app.home import Home, Role, make_directory
from operant.app.host import Assembly, ExtensionHost
from operant.app.neighbours import find_all
from operant.app.renewal import Renewal
from operant.app.residence import Residence
from operant.kernel.errors import Broken, Invalid, OperantError
from operant.kernel.kernel import Kernel
from operant.kernel.ports import Clock, Ids
from operant.kit.clock import SystemClock
from operant.kit.egress import Egress
from operant.kit.faults import read_faults
from operant.kit.http import Http
from operant.kit.ids import SystemIds
from operant.kit.logs import JsonLog
from operant.kit.secret import Secret
from operant.sdk.door import open_door
from operant.sdk.extension import Extension

DRAIN_S = 10.0

_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(?:$|_)")
_SHORTEST_SECRET = 8
"""Shorter values are words that occur in any text."""

_log = logging.getLogger("operant.app")


@dataclass(frozen=True)
class Options:
    """What a caller may set: `overrides` are variables over the environment, `work` takes up what is unfinished."""

    env: Mapping[str, str]
    overrides: Mapping[str, str]
    work: bool = True
    role: Role = "command"
    clock: Clock | None = None
    ids: Ids | None = None
    find: Callable[[], Found] = find_extensions


@dataclass(frozen=True)
class Plan:
    """What is to run, and with which settings."""

    found: Found
    config: Config
    secrets: tuple[Secret, ...]

    def named(self, name: str) -> Any:
        """Return the settings of an extension by its name."""
        return self.settings(next(one for one in self.found.extensions if one.name == name))

    def settings(self, extension: Extension) -> Any:
        """Return an extension's settings; one that takes things out of texts (`redact`) is told which."""
        settings = self.config.settings(extension)
        if not isinstance(settings, msgspec.Struct) or "redact" not in settings.__struct_fields__:
            return settings
        values = (*getattr(settings, "redact"), *(one.reveal() for one in self.secrets))  # noqa: B009
        return msgspec.structs.replace(settings, redact=tuple(dict.fromkeys(values)))


@dataclass(frozen=True)
class System:
    """A running system."""

    home: Home
    config: Config
    agents: AgentFiles
    kernel: Kernel
    residence: Residence
    renewal: Renewal

    def problems(self) -> tuple[str, ...]:
        """List what is not as it should be, one line each."""
        extensions = [f"extension {one.name}: {one.reason}" for one in self.residence.unusable]
        files = [f"{one.where}: {line}" for one in self.agents.problems() for line in one.sentence.splitlines()]
        unchecked = [f"operant.yaml: nobody can check the section {name}" for name in self.config.unchecked]
        late = self.agents.late()
        return (*extensions, *files, *unchecked, *([late] if late else []))


def options(
    *, env: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None, work: bool = True
) -> Options:
    """Make the usual options: the environment of this process, the machine's clock, all extensions."""
    return Options(env=os.environ if env is None else env, overrides=overrides or {}, work=work)


@asynccontextmanager
async def running(home: Home, chosen: Options | None = None) -> AsyncGenerator[System]:
    """Build a system on a home and run it while the context is open.

    Raises `Conflict` when one runs there already, `Invalid` for a configuration that is wrong, `Broken` when an
    extension that nothing works without cannot start.
    """
    chosen = chosen or options()
    env = {**chosen.env, **chosen.overrides}
    clock = chosen.clock or SystemClock()
    ids = chosen.ids or SystemIds(clock.now)
    faults = _faults(env)
    if not home.exists:
        home.init()
    async with AsyncExitStack() as stack:
        stack.enter_context(home.lock(clock.now, chosen.role))
        log = stack.enter_context(JsonLog(home.log, clock.now))
        stack.push(_say_why)
        found = find_all(home.path, chosen.find)
        config = load_config(home.path, env, found.extensions)
        plan = Plan(found=found, config=config, secrets=secrets_of(config, env))
        log.hide(plan.secrets)
        again = partial(load_config, home.path, env, found.extensions)
        agents = AgentFiles(home, config, clock, config.find, again)
        http = await stack.enter_async_context(Http(Egress(config.egress.private)))
        sandbox = Confinement(config.sandbox, home, http.egress)
        assembly = Assembly(clock, ids, agents, config.find, http, sandbox)
        assembly.serving = chosen.role == "daemon"
        assembly.reread = lambda name: replace(plan, config=again()).named(name)
        residence = await stack.enter_async_context(Residence())
        hosts = await _set_up(home, plan, assembly, residence)
        kernel = Kernel(assembly.need_store(), clock, ids, agents, faults=faults, version=__version__)
        open_door(kernel)
        open_desk(kernel, home, agents, env)
        renewal = Renewal(kernel, env, stays=chosen.role == "daemon")
        await _hand_over(kernel, hosts, residence)
        assembly.kernel = kernel
        system = System(home=home, config=config, agents=agents, kernel=kernel, residence=residence, renewal=renewal)
        kernel.extensions = residence.names
        kernel.problems = system.problems
        kernel.pid = os.getpid()
        if chosen.work:
            await _begin(hosts, residence)
        await stack.enter_async_context(kernel.running(work=chosen.work))
        for problem in system.problems():
            _log.warning("%s", problem)
        for agent in agents.list():
            if not agent.sandbox:
                _log.warning("agent %s runs commands outside of any sandbox, as its settings say", agent.name)
        yield system


async def _set_up(
    home: Home, plan: Plan, assembly: Assembly, residence: Residence
) -> list[tuple[Extension, ExtensionHost]]:
    """Start the extensions; the store comes first and so leaves last."""
    for one in plan.found.unusable:
        residence.refuse(one.name, one.reason)
    hosts: list[tuple[Extension, ExtensionHost]] = []
    off = {*plan.config.extensions.disabled, *(one.name for one in plan.found.extensions if home.removed(one.skill))}
    wanted = [one for one in plan.found.extensions if one.name not in off]
    for extension in sorted(wanted, key=lambda one: (section_of(one) != "store", one.name)):
        state = home.state / "extensions" / extension.name
        make_directory(state.parent)
        make_directory(state)
        own = extension.setup.startswith("operant.ext.")
        host = (ExtensionHost if own else ForeignHost)(extension.name, str(state), assembly)
        try:
            setup = load_name(extension.setup)
            fault = await residence.admit(extension.name, setup(host, plan.settings(extension)))
        except OperantError as error:
            fault = error.line()
            residence.refuse(extension.name, fault)
        _insist(extension, fault)
        if not fault:
            hosts.append((extension, host))
    return hosts


async def _hand_over(kernel: Kernel, hosts: list[tuple[Extension, ExtensionHost]], residence: Residence) -> None:
    for extension, host in hosts:
        fault = host.hand_over(kernel)
        if fault:
            await residence.evict(extension.name, fault)
        _insist(extension, fault)


async def _begin(hosts: list[tuple[Extension, ExtensionHost]], residence: Residence) -> None:
    for extension, host in hosts:
        try:
            await host.begin()
        except OperantError as error:
            residence.refuse(extension.name, error.line())
            _insist(extension, error.line())


def _insist(extension: Extension, fault: str) -> None:
    """Stop the start when an extension is broken that others rely on."""
    if fault and extension.essential:
        raise Broken(f"The extension {extension.name} cannot start: {fault}", "Nothing runs without it.")


def _say_why(kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
    """Leave a line in the log when a system ends by an error."""
    if isinstance(error, OperantError):
        _log.error("ended: %s", error.line())
    elif isinstance(error, Exception):
        _log.error("ended by a fault of ours", exc_info=error)


def secrets_of(config: Config, env: Mapping[str, str]) -> tuple[Secret, ...]:
    """Return what must never be seen: the secrets of the configuration, and variables that are named like one."""
    named = [Secret(value, name) for name, value in env.items() if _SECRET_NAME.search(name.upper())]
    return tuple(one for one in (*config.secrets, *named) if len(one.reveal()) >= _SHORTEST_SECRET)


def _faults(env: Mapping[str, str]) -> Callable[[str], None]:
    try:
        return read_faults(env.get("OPERANT_FAULT", ""))
    except ValueError as error:
        raise Invalid(f"OPERANT_FAULT is not POINT:COUNT: {error}.") from error
