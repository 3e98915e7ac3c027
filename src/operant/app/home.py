"""The home: where everything of one system lies, who may read it, and who runs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from operant.app.seeds import AGENT_FILES, HOME_FILES
from operant.kernel.errors import Conflict, Invalid, Unavailable
from operant.kernel.records import Record
from operant.kit.lock import FileLock, Taken
from operant.kit.token import own_token

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600


Role = Literal["daemon", "command"]


class Occupied(Conflict):
    """Report that a system runs on this home already."""

    code = "occupied"
    holder: Holder | None = None


class Holder(Record):
    """Who runs a system on a home, since when in microseconds, and whether to stay or for the time of a command."""

    pid: int = 0
    socket: str = ""
    since: int = 0
    role: Role = "daemon"


class Home:
    """One home directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "operant.yaml"
        self.preamble = path / "SYSTEM.md"
        self.agents = path / "agents"
        self.shared = path / "shared"
        self.state = path / "state"
        self.socket = path / "state" / "operant.sock"
        self.token = path / "state" / "token"
        self.log = path / "logs" / "operant.log"
        self.lock_file = path / "run" / "daemon.lock"

    @staticmethod
    def find(env: Mapping[str, str]) -> Home:
        """Return the home that `OPERANT_HOME` names, or `~/.operant`."""
        named = env.get("OPERANT_HOME")
        try:
            return Home(Path(named).expanduser().absolute() if named else Path.home() / ".operant")
        except RuntimeError as error:
            raise Invalid("There is no home directory.", "Set OPERANT_HOME.") from error

    @property
    def exists(self) -> bool:
        """Tell whether `init` was here."""
        return self.config.exists() and self.agents.is_dir()

    def removed(self, skill: str) -> bool:
        """Tell whether a skill that comes with Operant was removed, and so the extension that it stands for."""
        return bool(skill) and (self.path / "skills" / ".removed" / skill).exists()

    def init(self) -> tuple[Path, ...]:
        """Make what is missing and return it; nothing that is there is overwritten, only its rights are narrowed.

        Raises `Unavailable` when the disk does not let us.
        """
        made: list[Path] = []
        try:
            for directory in ("", "agents", "jobs", "skills", "extensions", "shared", "state", "logs", "run"):
                made.extend(make_directory(self.path / directory))
            for name, text in HOME_FILES.items():
                made.extend(make_file(self.path / name, text))
            if not self.token.exists():
                own_token(self.token)
                made.append(self.token)
            if not any(self.agents.glob("*/AGENT.md")):
                made.extend(self.add_agent("operant"))
            self.narrow()
        except OSError as error:
            raise Unavailable(f"The home {self.path} cannot be made: {error}.") from error
        return tuple(made)

    def add_agent(self, name: str, agent_file: str = "") -> list[Path]:
        """Make the files of an agent as far as they are missing."""
        directory = self.agents / name
        workspace = directory / "workspace"
        made: list[Path] = []
        for path in (self.agents, directory, workspace, workspace / "memory"):
            made.extend(make_directory(path))
        for file, text in AGENT_FILES.items():
            words = agent_file if file == "AGENT.md" and agent_file else text.replace("{name}", name)
            made.extend(make_file(directory / file, words))
        link = workspace / "shared"
        if not link.is_symlink() and not link.exists():
            link.symlink_to("../../../shared", target_is_directory=True)
            made.append(link)
        return made

    def make_workspace(self, name: str) -> None:
        """Make the directories that an agent's tools work in, also for one that is only in the configuration."""
        for path in (self.agents, self.agents / name, self.agents / name / "workspace"):
            make_directory(path)

    def narrow(self) -> None:
        """Take everybody else's rights from the home and from what may hold secrets or talk."""
        for directory in (self.path, self.agents, self.state, self.log.parent, self.lock_file.parent):
            if directory.is_dir():
                directory.chmod(PRIVATE_DIRECTORY)
        for file in (self.config, self.preamble, self.log, self.lock_file, self.token):
            if file.is_file():
                file.chmod(PRIVATE_FILE)

    @contextmanager
    def lock(self, now: Callable[[], int], role: Role = "command") -> Generator[None]:
        """Be the only system on this home while the context is open. Raises `Occupied` naming who is."""
        try:
            make_directory(self.path)
            make_directory(self.lock_file.parent)
            lock = FileLock(self.lock_file)
            lock.__enter__()
        except Taken as taken:
            holder = _read_holder(taken.holder)
            who = f"process {holder.pid}" if holder.pid else "another process"
            occupied = Occupied(
                f"A system already runs on {self.path}: {who}.", "Stop it first, or set another OPERANT_HOME."
            )
            occupied.holder = holder
            raise occupied from taken
        except OSError as error:
            raise Unavailable(f"The home {self.path} cannot be locked: {error}.") from error
        try:
            holder = Holder(pid=os.getpid(), socket=str(self.socket), since=now(), role=role)
            lock.write(msgspec.json.encode(holder))
            yield
        finally:
            lock.__exit__(None, None, None)

    def holder(self) -> Holder | None:
        """Return who wrote itself into the lock last, or None; only holding the lock proves that it lives."""
        try:
            words = self.lock_file.read_bytes()
        except OSError:
            return None
        return _read_holder(words) if words else None


def _read_holder(words: bytes) -> Holder:
    try:
        return msgspec.json.decode(words or b"{}", type=Holder)
    except msgspec.DecodeError:
        return Holder()


def make_directory(path: Path) -> list[Path]:
    """Make a private directory if it is missing."""
    if path.is_dir():
        return []
    path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    return [path]


def make_file(path: Path, text: str) -> list[Path]:
    """Write a private file if there is nothing of its name, not even a dead link."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:
        return []
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return [path]
