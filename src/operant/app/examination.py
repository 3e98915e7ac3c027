"""The checks of `operant doctor` and of the page: each looks at one thing and changes nothing."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from operant.app.config import SandboxSettings, load_config
from operant.app.home import Home
from operant.app.means import find_means
from operant.app.neighbours import find_all
from operant.kernel.errors import Invalid, NotFound, OperantError
from operant.kernel.records import Agent, OutboxItem
from operant.kernel.syscalls import (
    AgentList,
    Check,
    Finding,
    KernelStatus,
    McpList,
    McpServer,
    MessageList,
    ModelInfo,
    ModelList,
    ServiceInfo,
    ServiceList,
    Status,
    StoreCheck,
)
from operant.kit.secret import Secret
from operant.sdk.client import Client

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LITTLE = 1_000_000_000
_TOO_LITTLE = 100_000_000


async def examine(home: Home, env: Mapping[str, str], system: Callable[[], Awaitable[list[Check]]]) -> list[Check]:
    """Look at everything, from the disk up; `system` looks at the one that runs, once all below it is well."""
    checks = [*_program(), *_home(home), *_disk(home), *_settings(home, env)]
    if any(check.state == "fail" for check in checks):
        skipped = "not looked at: what fails above comes first"
        return [*checks, *await _sandbox(home, env), Check(name="system", state="warn", text=skipped)]
    try:
        found = await system() if home.exists else []
    except OperantError as error:
        found = [Check(name="system", state="fail", text=error.sentence, hint=error.hint)]
    return [*checks, *found, *await _sandbox(home, env)]


def _program() -> Iterator[Check]:
    from operant import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    yield Check(name="program", state="ok", text=f"operant {__version__} on Python {python}, {sys.platform}")


def _home(home: Home) -> Iterator[Check]:
    if not home.exists:
        yield Check(name="home", state="warn", text=f"{home.path} is not there yet", hint="operant init makes it")
        return
    wide = [path for path in (home.path, home.state, home.config, home.log) if _is_open(path)]
    for path in wide:
        yield Check(
            name="home", state="fail", text=f"others may read {path}", hint=f"chmod go= {path}   (or: operant init)"
        )
    if not os.access(home.path, os.W_OK):
        yield Check(name="home", state="fail", text=f"{home.path} cannot be written to", hint="whose is it?")
    elif not wide:
        yield Check(name="home", state="ok", text=f"{home.path}, for you alone")


def _is_open(path: Path) -> bool:
    try:
        return os.name == "posix" and bool(path.stat().st_mode & _OTHERS)
    except OSError:
        return False


def _disk(home: Home) -> Iterator[Check]:
    place = next((path for path in (home.path, *home.path.parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(place).free
    state: Literal["ok", "warn", "fail"] = "ok" if free > _LITTLE else "warn" if free > _TOO_LITTLE else "fail"
    hint = "" if state == "ok" else "make room: the store stops when the disk is full"
    yield Check(name="disk", state=state, text=f"{f'{free / 1_000_000_000:.1f} GB'} free", hint=hint)


def _settings(home: Home, env: Mapping[str, str]) -> Iterator[Check]:
    try:
        config = load_config(home.path, env, find_all(home.path).extensions)
    except Invalid as error:
        for line in error.sentence.splitlines():
            yield Check(name="settings", state="fail", text=line, hint="operant config keys explains every key")
        return
    yield Check(name="settings", state="ok", text=f"{home.config} is fine")
    for key, secret in _secrets(config.sections, ""):
        if not secret:
            text = f"{key}: the variable {secret.name or 'for it'} is not set"
            yield Check(name="settings", state="warn", text=text, hint="set it in the environment or in env_file")


def _secrets(value: Any, path: str) -> Iterator[tuple[str, Secret]]:
    if isinstance(value, Secret):
        yield path, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _secrets(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            yield from _secrets(item, f"{path}.{name}" if path else name)


async def look(link: Client, *, full: bool = False, hosting: bool = False) -> list[Check]:
    """Ask a system about itself; `hosting`: it was started for this."""
    status = await link.call(KernelStatus())
    agents = await link.call(AgentList())
    who = "does not run; started for this check only" if hosting else f"runs as process {status.pid}"
    return [
        Check(name="system", state="ok", text=f"{who}, {len(status.extensions)} extensions at work"),
        *_accepting(status),
        *_store(await link.call(StoreCheck(full=full))),
        *(_problem(one) for one in status.problems),
        *_models(await link.call(ModelList())),
        _agents(agents),
        *_unconfined(agents),
        *_services(await _services_of(link), hosting=hosting),
        *_mcp(await _mcp_of(link)),
        *_letters(await link.call(MessageList(dead=True))),
    ]


def _accepting(status: Status) -> Iterator[Check]:
    if status.reason:
        yield Check(name="store", state="fail", text=status.reason, hint=status.hint)
    for damage in status.damages:
        text = f"{damage.what} at {damage.where}: {damage.action}"
        yield Check(name="store", state="fail", text=text, hint="operant doctor --repair saves what can be read")


def _store(findings: Sequence[Finding]) -> Iterator[Check]:
    for one in findings:
        text = f"{one.name}: {one.sentence}"
        yield Check(name="store", state="ok" if one.ok else "fail", text=text, hint=one.hint)


def _problem(text: str) -> Check:
    hint = "what was valid before stays in force"
    if text.startswith("extension "):
        hint = "mend it, or take it away; the others go on"
    elif text.endswith("next start on"):
        hint = "stop Operant and start it again"
    return Check(name="problem", state="warn", text=text, hint=hint)


def _models(models: Sequence[ModelInfo]) -> Iterator[Check]:
    if not models:
        yield Check(name="models", state="fail", text="no model was found", hint="set a key, or start a model server")
    missing = "its provider is not here or has no key: operant model list --all says what it wants"
    for one in models[:1]:
        if not one.ready:
            yield Check(name="models", state="warn", text=f"{one.model} cannot be asked", hint=missing)
            continue
        smart = not one.model.startswith("offline/")
        hint = "" if smart else "set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama"
        yield Check(name="models", state="ok" if smart else "warn", text=one.why or one.model, hint=hint)
    for one in models[1:]:
        state = "ok" if one.ready else "warn"
        yield Check(name="models", state=state, text=f"then {one.model}", hint="" if one.ready else missing)


async def _mcp_of(link: Client) -> tuple[McpServer, ...]:
    try:
        return await link.call(McpList())
    except NotFound:  # without the extension
        return ()


def _mcp(servers: Sequence[McpServer]) -> Iterator[Check]:
    """Say which servers of others do not work; one that nobody has wanted yet is no news."""
    well = ", ".join(one.name for one in servers if one.state == "connected")
    if well:
        yield Check(name="mcp", state="ok", text=well)
    for one in servers:
        held = [tool.tool for tool in one.tools if tool.state in ("new", "changed")]
        if one.sentence:
            yield Check(
                name="mcp", state="warn", text=f"{one.name}: {one.sentence}", hint=f"operant mcp test {one.name}"
            )
        elif held:
            text = f"{one.name}: {len(held)} of its tools changed and are not offered"
            yield Check(name="mcp", state="warn", text=text, hint=f"operant mcp test {one.name}, then approve")


async def _services_of(link: Client) -> tuple[ServiceInfo, ...]:
    try:
        return await link.call(ServiceList())
    except NotFound:  # their extension is switched off
        return ()


def _services(services: Sequence[ServiceInfo], *, hosting: bool) -> Iterator[Check]:
    """Say which do not run although they were allowed to, and which wait for a yes."""
    well = ", ".join(one.name for one in services if one.state in ("running", "starting"))
    if well:
        yield Check(name="services", state="ok", text=well)
    for one in services:
        if one.state in ("running", "starting", "stopped") or (one.state == "waiting" and hosting):
            continue
        text = f"{one.name} is {one.state}{f': {one.reason}' if one.reason else ''}"
        asks = one.state == "ungranted" and one.digest
        hint = f"operant skill grant {one.name}" if asks else f"operant skill logs {one.name}"
        yield Check(name="services", state="fail" if one.state == "failed" else "warn", text=text, hint=hint)


def _agents(agents: Sequence[Agent]) -> Check:
    names = ", ".join(agent.name for agent in agents)
    return Check(name="agents", state="ok" if names else "fail", text=names or "there is none")


def _letters(dead: Sequence[OutboxItem]) -> Iterator[Check]:
    if dead:
        text = f"{len(dead)} could not be delivered"
        yield Check(name="outbox", state="warn", text=text, hint="operant outbox list")


async def _sandbox(home: Home, env: Mapping[str, str]) -> list[Check]:
    """Try what commands would be run in."""
    try:
        by = load_config(home.path, env, find_all(home.path).extensions).sandbox.by
    except Invalid:  # said above
        by = SandboxSettings().by
    means = await find_means(by)
    if means.kind == "bubblewrap":
        text = "commands run in bubblewrap: user namespaces work here"
        return [Check(name="sandbox", state="ok", text=text)]
    if means.kind == "landlock":
        text = f"commands run under Landlock, a weaker sandbox without network. {means.why}"
        return [Check(name="sandbox", state="warn", text=text, hint=means.remedy)]
    return [Check(name="sandbox", state="fail", text=f"no command is run: {means.why}", hint=means.remedy)]


def _unconfined(agents: Sequence[Agent]) -> Iterator[Check]:
    for agent in agents:
        if not agent.sandbox:
            text = f"commands of agent {agent.name} run with your rights, outside of any sandbox"
            yield Check(name="sandbox", state="warn", text=text, hint="so its `sandbox: false` says; true confines it")
