"""Make ready what a service is started from: its files, its setup, its environment."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from operant.ext.services.clerk import ServiceClerk
from operant.ext.services.declared import SETUP, Declared, words_of
from operant.ext.services.generation import Clerk, Generation, Plan, Unfit
from operant.ext.services.journal import Journal
from operant.ext.services.keeper import State, Target
from operant.ext.services.settings import ServiceSettings
from operant.ext.services.stash import Stash
from operant.ext.services.tools import ServiceTools
from operant.kit import proc
from operant.sdk import (
    SERVICE_START_BEFORE,
    SKILL_FAILED,
    SKILL_STARTED,
    SKILL_STOPPED,
    Agent,
    Ask,
    CallContext,
    Command,
    Host,
    Nothing,
    OperantError,
    Reject,
    ServiceChanged,
    ServiceInput,
    ToolList,
)

_HERE = Path(__file__).parent
SDKS = next(place for place in (_HERE / "sdks", _HERE.parents[3] / "sdk") if place.is_dir() or place.name == "sdk")
"""What services are written with: inside the package, or at the top of a checkout."""
SETUP_S = 600.0
_LONGEST_SOCKET = 90
"""Bytes of a path that a service can still connect to: 108 on Linux, less elsewhere."""
_PATH = "/usr/local/bin:/usr/bin:/bin"


class Workshop:
    """Make plans; one for all services."""

    def __init__(self, host: Host, settings: ServiceSettings) -> None:
        self._host = host
        self.configuration: Mapping[str, Mapping[str, str]] = settings.configuration
        self._state = Path(host.state)
        self._sockets: Path | None = None
        self._started = 0

    def configured(self, skill: str) -> dict[str, str]:
        """Return the configuration of the service of a skill."""
        return dict(self.configuration.get(skill, {}))

    def stash(self, service: str) -> Stash:
        """Return the copies of a service."""
        return Stash(self._state / _safe(service))

    def journal(self, service: str) -> Journal:
        """Return the log of a service."""
        return Journal(service, Path(self._host.home) / "logs" / "services", self._host.clock)

    def at(self, journal: Journal, tools: ServiceTools) -> OneService:
        """Return the place where one service is made ready; `tools` are those of all services."""
        return OneService(self, self._host, journal, tools)

    def modules(self) -> Path:
        """Return the folder in which Node finds `@operant/sdk`: it looks in those above a program."""
        folder = self._state / "node_modules"
        link = folder / "@operant" / "sdk"
        if link.resolve() != (SDKS / "typescript").resolve():
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(SDKS / "typescript")
        return folder

    def socket(self, service: str) -> str:
        """Return where a generation is to connect; no two are the same."""
        if self._sockets is None:
            own = self._state / "sockets"
            if len(os.fsencode(own)) + 40 > _LONGEST_SOCKET:
                own = Path(tempfile.mkdtemp(prefix="operant-"))
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in own.glob("*.sock"):  # of one that was killed; there is one Operant at a time
                left.unlink(missing_ok=True)
            self._sockets = own
        self._started += 1
        return str(self._sockets / f"{_safe(service)[:24]}-{os.getpid()}-{self._started}.sock")

    def close(self) -> None:
        """Leave no socket behind."""
        if self._sockets is not None and not self._sockets.is_relative_to(self._state):
            shutil.rmtree(self._sockets, ignore_errors=True)


class OneService:
    """Make the plans of one service."""

    def __init__(self, workshop: Workshop, host: Host, journal: Journal, tools: ServiceTools) -> None:
        self._workshop = workshop
        self._host = host
        self._journal = journal
        self._tools = tools
        self._began = False

    async def examine(self, fresh: Generation) -> None:
        """Refuse tools whose names somebody else has, and places that are named twice. Raises `Unfit`."""
        register = fresh.register
        assert register is not None
        places = [(one.point, one.phase) for one in register.hooks]
        twice = sorted({point for point, phase in places if places.count((point, phase)) > 1})
        twice += sorted({event for event in register.events if register.events.count(event) > 1})
        if twice:
            raise Unfit(f"it registers twice at {', '.join(twice)}")
        taken = await self._taken() if register.tools else {}
        shadowing = sorted(taken.keys() & {one.name for one in register.tools})
        if shadowing:
            raise Unfit(f"there is a tool {shadowing[0]} already; call it otherwise", final=True)

    def tell(self, state: State, reason: str) -> None:
        """Tell observers when it comes and goes, and its log what became of it."""
        self._began = self._began or state == "starting"
        if self._began and state != "starting":
            self._journal.say("operant", f"{state}: {reason}" if reason else state)
        points = {"running": SKILL_STARTED, "stopped": SKILL_STOPPED, "waiting": SKILL_STOPPED, "failed": SKILL_FAILED}
        point = points.get(state)
        if point is not None:
            self._host.emit(point, ServiceChanged(service=self._journal.name, reason=reason))

    async def _may_start(self, target: Target) -> None:
        told = target.declared
        about = ServiceInput(service=told.name, digest=target.digest, command=told.command, granted=told.wants)
        verdict = (await self._host.judge(SERVICE_START_BEFORE, about, Nothing())).verdict
        if isinstance(verdict, Reject | Ask):
            why = verdict.reason if isinstance(verdict, Reject) else "somebody would have to be asked"
            raise Unfit(f"it may not start: {why}", final=True)

    async def _taken(self) -> dict[str, str]:
        """Return the names of tools that are not this service's own."""
        found: dict[str, str] = {}
        own = self._tools.of(self._journal.name)
        for agent in self._host.agents.list():
            specs = await self._host.call(ToolList(agent=agent.name))
            found |= {spec.name: agent.name for spec in specs if spec.name not in own}
        return found

    async def prepare(self, target: Target, number: int) -> tuple[Plan, Clerk]:
        """Make ready what is to be started. Raises `Unfit`."""
        told = target.declared
        await self._may_start(target)
        stash = self._workshop.stash(told.name)
        try:
            folder = await asyncio.to_thread(stash.keep, Path(told.folder), target.digest, told.words)
            socket = self._workshop.socket(told.name)
            if not told.remote and not stash.is_ready(target.digest):
                await self._set_up(folder, told)
                stash.set_ready(target.digest)
            words = () if told.remote else words_of(told.skill, told.command, folder)  # perhaps setup has just made it
            command = self._command(words, folder, stash.data, socket)
        except (OperantError, OSError, ValueError) as error:  # ValueError: a name with a zero byte in it
            sentence = error.line() if isinstance(error, OperantError) else str(error)
            raise Unfit(sentence, final=True) from error
        plan = Plan(
            service=told.name,
            number=number,
            digest=target.digest,
            command=command,
            socket=socket,
            granted=told.wants,
            configuration=self._workshop.configured(told.skill),
            hooks=told.hooks,
            remote=told.remote,
        )
        return plan, ServiceClerk(self._host, self._journal, _agent(told), told.wants)

    def _command(self, words: tuple[str, ...], folder: Path, data: Path, socket: str) -> Command:
        environment = {
            "PATH": _PATH,
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(SDKS / "python"),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPERANT_SERVICE_DATA": str(data),
            "OPERANT_SERVICE_SDKS": str(SDKS),
        }
        return Command(
            argv=words,
            cwd=str(folder),
            env=environment,
            tool="service",
            private=True,
            readable=(str(folder), str(SDKS), str(self._workshop.modules())),
            writable=(str(data),),
            socket=socket,
        )

    async def _set_up(self, folder: Path, told: Declared) -> None:
        """Run `setup.sh` once for each content; what it leaves in the copy is there for the service."""
        if not (folder / SETUP).is_file():
            return
        call = CallContext(call_id="", session="", turn="", agent=_agent(told), key="")
        command = Command(
            argv=("bash", str(folder / SETUP)),
            cwd=str(folder),
            env={"PATH": _PATH, "LANG": "C.UTF-8"},
            tool="service",
            private=True,
            writable=(str(folder),),
        )
        try:
            async with self._host.confined(call, command) as launch:
                finished = await proc.launch(
                    launch, timeout_s=SETUP_S, on_output=lambda text: self._journal.write(text.encode())
                )
        except (proc.CannotStart, OperantError) as error:
            raise Unfit(f"{SETUP} could not be run: {error}") from error
        finished.output.close()
        if finished.code != 0 or finished.timed_out:
            raise Unfit(f"{SETUP} ended with code {finished.code}; its log says why", final=True)


def _agent(told: Declared) -> Agent:
    """Return whose sandbox the service runs in: its own, with the network that it was granted."""
    return Agent(name=f"service-{_safe(told.name)}", sandbox=told.sandbox, network=told.network)


def _safe(name: str) -> str:
    """Return a name for files; no two services have the same, nor that of what else is there."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:80]
    if safe == name and name not in ("node_modules", "sockets"):
        return name
    return f"{safe}.{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}"
