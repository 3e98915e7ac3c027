"""Commands of extensions in the shells of agents.

While a tool of an agent runs, its shell has a folder of commands on its PATH and one socket behind them. The socket
takes the words of a command and gives back what it prints: no syscall, no token. Who asks is known by which socket it
is, so nobody can say that they are somebody else.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from operant.app.home import make_directory
from operant.kernel.errors import OperantError
from operant.kernel.ports import CallContext
from operant.kernel.records import Agent
from operant.kit import typed
from operant.kit.endpoint import listen
from operant.sdk.extension import Commands, Printed, Typed

VARIABLE = "OPERANT_COMMANDS"
_LONGEST = 4 << 20
"""Bytes of what was typed: the most that is read from standard input, as JSON writes it at worst."""
_AT_ONCE = 64
"""Commands of one call's shell that may run side by side; more are hung up on."""

_log = logging.getLogger("operant.commands")


class Reach(NamedTuple):
    """How a shell gets to commands: the folders for the beginning and the end of its PATH, and the socket."""

    folders: tuple[str, ...]
    socket: str


class ShellCommands:
    """All commands of a system; the first extension that offers a name has it."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._boxes: list[Commands] = []
        self._over: list[Commands] = []
        self._furnishing = asyncio.Lock()
        self._opened = 0

    def add(self, box: Commands, *, over: bool = False) -> None:
        """Offer more commands; those that go `over` all else also hide programs of the system."""
        (self._over if over else self._boxes).append(box)

    def offered(self, agent: Agent) -> dict[str, str]:
        """Return an agent's commands by name, and what each does."""
        found: dict[str, str] = {}
        for box in (*self._over, *self._boxes):
            for name, words in box.commands(agent).items():
                found.setdefault(name, words)
        return found

    @asynccontextmanager
    async def reach(self, call: CallContext) -> AsyncGenerator[Reach | None]:
        """Let the commands of one call's shell be reached while the context is open; None where there are none."""
        names = self.offered(call.agent) if hasattr(os, "fork") else {}
        if not names:
            yield None
            return
        first = {name for box in self._over for name in box.commands(call.agent)}
        parts = (tuple(sorted(first)), tuple(sorted(names.keys() - first)))
        async with self._furnishing:
            folders = [str(await asyncio.to_thread(self._folder, part)) for part in parts]
        self._opened += 1
        path = self._directory("commands") / f"{os.getpid()}-{self._opened}.sock"
        counter = _Counter(self, call)
        server = await asyncio.start_unix_server(counter.serve, sock=listen(path), limit=_LONGEST)
        try:
            async with server:
                yield Reach(tuple(folders), str(path))
        finally:
            path.unlink(missing_ok=True)

    async def run(self, call: CallContext, words: Typed) -> Printed:
        """Have a command run by whoever offers it; it was typed in the shell of this call."""
        for box in (*self._over, *self._boxes):
            if words.name in box.commands(call.agent):
                try:
                    return await box.run(call, words)
                except OperantError as error:
                    return Printed(error=f"{words.name}: {error.line()}\n", code=1)
        return Printed(error=f"{words.name}: there is no such command any more\n", code=127)

    def _folder(self, names: tuple[str, ...]) -> Path:
        """Return the folder with a file for each command; one for each set of names and content, never changed."""
        text = f"#!{sys.executable} -IS\n{Path(typed.__file__).read_text('utf-8')}"
        key = hashlib.sha256("\n".join((*names, text)).encode()).hexdigest()
        folder = self._directory("bin") / key[:32]
        if not folder.is_dir():
            fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
            fresh.mkdir(mode=0o755, exist_ok=True)
            for name in names:
                file = fresh / name
                file.write_text(text, "utf-8")
                file.chmod(0o755)
            fresh.replace(folder)
        return folder

    def _directory(self, name: str) -> Path:
        for path in (self._state, self._state / "sandbox", self._state / "sandbox" / name):
            make_directory(path)
        return path


class _Counter:
    """Serves the shell of one call."""

    def __init__(self, commands: ShellCommands, call: CallContext) -> None:
        self._commands = commands
        self._call = call
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one command; a shell that opens many connections uses up its own and not ours."""
        if self._open >= _AT_ONCE:
            writer.close()
            return
        self._open += 1
        try:
            await self._serve(reader, writer)
        finally:
            self._open -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            words = msgspec.json.decode(await reader.readline(), type=Typed)
            answer = await self._commands.run(self._call, words)
        except (msgspec.MsgspecError, ValueError):
            answer = Printed(error="that is no command\n", code=64)
        except OSError:
            return
        writer.write(msgspec.json.encode(answer) + b"\n")
