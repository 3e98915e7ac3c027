"""Who keeps the service running: systemd or launchd, each asked through its own command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from operant.app.service.program import INSTEAD, Program, Said
from operant.app.service.unit import Daemon, launchd_plist, systemd_unit
from operant.kernel.errors import Invalid, NotFound, Unavailable
from operant.kernel.records import Record
from operant.kit.files import write_private

_READABLE = 0o644


class Condition(Record):
    """How a service stands; `state` is the word of systemd or launchd, `pid` is 0 when it does not run."""

    name: str
    path: str
    installed: bool = False
    enabled: bool = False
    running: bool = False
    state: str = ""
    pid: int = 0
    restarts: int = 0


class Manager(Protocol):
    """What can be done about the service of one home.

    `start`, `stop` and `restart` raise `NotFound` when it is not installed; all raise `Unavailable` when the system
    refuses, or has nothing that keeps services of a user.
    """

    @property
    def path(self) -> Path:
        """Return the file that makes the service known."""
        ...

    async def text(self) -> str:
        """Return what that file is to hold; needs no running system."""
        ...

    async def install(self) -> bool:
        """Write the file and enable the service from the next login on; false when nothing had to be written."""
        ...

    async def uninstall(self) -> bool:
        """Stop the service and forget it; false when there was none."""
        ...

    async def start(self) -> None:
        """Start the service and wait until it is ready, where the system tells."""
        ...

    async def stop(self) -> None:
        """Stop the service until the next login or start."""
        ...

    async def restart(self) -> None:
        """Stop and start the service."""
        ...

    async def condition(self) -> Condition:
        """Return how it stands."""
        ...


def manager_of(daemon: Daemon, env: Mapping[str, str], platform: str = sys.platform) -> Manager:
    """Return who keeps services here. Raises `Unavailable` on a system for which nobody is known."""
    if platform == "linux":
        return Systemd(daemon, env)
    if platform == "darwin":
        return Launchd(daemon, env)
    if platform == "win32":
        raise Unavailable(
            "There is no `operant service` on Windows yet.",
            "Let the Task Scheduler run `operant serve --supervised` when you log on; that is untried.",
        )
    raise Unavailable(f"There is no `operant service` on {platform}.", INSTEAD)


class Systemd:
    """The user manager of systemd."""

    def __init__(self, daemon: Daemon, env: Mapping[str, str]) -> None:
        self._daemon = daemon
        self._systemctl = Program("systemctl", env)
        self._unit = f"{daemon.name}.service"
        self._look = f"See: journalctl --user -u {self._unit}, and operant logs."
        self.path = _config(env) / "systemd" / "user" / self._unit

    async def text(self) -> str:
        """Return the unit for the systemd of this machine, or a cautious one when there is none."""
        try:
            said = await self._systemctl.ask("--version")
        except Unavailable:
            return systemd_unit(self._daemon, 0)
        return systemd_unit(self._daemon, _first_number(said.text))

    async def install(self) -> bool:
        """Write the unit and enable it."""
        await self._reach()
        changed = _write(self.path, await self.text())
        await self._order("daemon-reload")
        await self._order("enable", self._unit)
        return changed

    async def uninstall(self) -> bool:
        """Stop the unit, disable it and remove its file."""
        await self._reach()
        if not self.path.exists():
            return False
        await self._order("disable", "--now", self._unit)
        _remove(self.path)
        await self._order("daemon-reload")
        await self._systemctl.ask("--user", "reset-failed", self._unit)  # fails when it had not failed
        return True

    async def start(self) -> None:
        """Start the unit and wait for it to be ready."""
        await self._order_installed("start")

    async def stop(self) -> None:
        """Stop the unit."""
        await self._order_installed("stop")

    async def restart(self) -> None:
        """Restart the unit and wait for it to be ready."""
        await self._order_installed("restart")

    async def condition(self) -> Condition:
        """Ask for the unit's properties."""
        await self._reach()
        names = "ActiveState,SubState,UnitFileState,MainPID,NRestarts"
        said = await self._systemctl.ask("--user", "show", self._unit, f"--property={names}")
        values = {name: value for name, _, value in (line.partition("=") for line in said.text.splitlines())}
        active = values.get("ActiveState", "unknown")
        return Condition(
            name=self._unit,
            path=str(self.path),
            installed=self.path.exists(),
            enabled=values.get("UnitFileState") == "enabled",
            running=active == "active",
            state=f"{active} ({values['SubState']})" if values.get("SubState") else active,
            pid=_first_number(values.get("MainPID", "")),
            restarts=_first_number(values.get("NRestarts", "")),
        )

    async def _reach(self) -> None:
        """See that there is a user manager: a container has none, nor has `su` or `sudo -u`."""
        said = await self._systemctl.ask("--user", "show", "--property=Version")
        if said.code != 0:
            why = " ".join(said.text.split()).rstrip(".") or f"exit code {said.code}"
            raise Unavailable(f"There is no systemd for your user here ({why}).", INSTEAD)

    async def _order(self, *words: str, hint: str = "") -> None:
        await self._systemctl.order("--user", *words, hint=hint)

    async def _order_installed(self, verb: str) -> None:
        await self._reach()
        _need(self.path)
        await self._order(verb, self._unit, hint=self._look)


class Launchd:
    """The launch agents of macOS. Untried: written from its manual, tested only against a stand-in."""

    def __init__(self, daemon: Daemon, env: Mapping[str, str]) -> None:
        self._daemon = daemon
        self._launchctl = Program("launchctl", env)
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{daemon.name}"
        self.path = _own_home(env) / "Library" / "LaunchAgents" / f"{daemon.name}.plist"

    async def text(self) -> str:
        """Return the property list."""
        return launchd_plist(self._daemon)

    async def install(self) -> bool:
        """Write the property list; that it lies there is what starts it at login."""
        text = await self.text()
        await self._launchctl.order("enable", self._target)
        _make_directory(self._daemon.home / "logs")
        return _write(self.path, text)

    async def uninstall(self) -> bool:
        """Stop the agent and remove its file."""
        if not self.path.exists():
            return False
        if (await self._print()).code == 0:
            await self._launchctl.order("bootout", self._target)
        _remove(self.path)
        return True

    async def start(self) -> None:
        """Load the agent, which starts it."""
        _need(self.path)
        if (await self._print()).code != 0:
            await self._launchctl.order("bootstrap", self._domain, str(self.path))
        else:
            await self._launchctl.order("kickstart", self._target)

    async def stop(self) -> None:
        """Unload the agent: it would be started again at once otherwise."""
        _need(self.path)
        if (await self._print()).code == 0:
            await self._launchctl.order("bootout", self._target)

    async def restart(self) -> None:
        """Unload and load the agent, so that a changed file counts."""
        await self.stop()
        await self.start()

    async def condition(self) -> Condition:
        """Read what launchd prints about the agent."""
        said = await self._print()
        values = _printed(said.text) if said.code == 0 else {}
        installed = self.path.exists()
        return Condition(
            name=self._daemon.name,
            path=str(self.path),
            installed=installed,
            enabled=installed,
            running=values.get("state") == "running",
            state=values.get("state", "not loaded"),
            pid=_first_number(values.get("pid", "")),
            restarts=max(_first_number(values.get("runs", "")) - 1, 0),
        )

    async def _print(self) -> Said:
        return await self._launchctl.ask("print", self._target)


def _printed(text: str) -> dict[str, str]:
    """Read the agent's own values out of what launchd prints; those further in belong to other things."""
    return {match[1]: match[2] for match in re.finditer(r"^\t([a-z ]+) = (.+)$", text, re.MULTILINE)}


def _config(env: Mapping[str, str]) -> Path:
    named = Path(env.get("XDG_CONFIG_HOME", ""))
    return named if named.is_absolute() else _own_home(env) / ".config"  # a relative one does not count, it is said


def _own_home(env: Mapping[str, str]) -> Path:
    try:
        return Path(env.get("HOME") or Path.home())
    except RuntimeError as error:
        raise Invalid("There is no home directory.", "Set HOME.") from error


def _need(path: Path) -> None:
    if not path.exists():
        raise NotFound("Operant is not installed as a service.", "First: operant service install.")


def _write(path: Path, text: str) -> bool:
    """Write a file unless it says the same already; true when it was written. Raises `Unavailable`."""
    data = text.encode()
    _make_directory(path.parent)
    try:
        if path.is_file() and path.read_bytes() == data:
            return False
        write_private(path, data, _READABLE)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error
    return True


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"The directory {path} cannot be made: {error.strerror}.") from error


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(f"{path} cannot be removed: {error.strerror}.") from error


def _first_number(text: str) -> int:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else 0
