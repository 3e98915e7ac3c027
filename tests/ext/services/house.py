"""A whole system with services: skills are written, allowed and asked."""

from __future__ import annotations

import asyncio
import os
import re
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from operant.app.build import System
from operant.kernel.records import OWNER, ToolEnded, text_of
from operant.kernel.syscalls import ServiceGrant, ServiceInfo, ServiceList, ServiceLogs, Syscall, ToolInvoke
from operant.sdk.testing.server import ScriptedServer
from tests.journey.house import ended, say, system

ENVELOPE = re.compile(r"<outside [^>]*>\n(.*)\n</outside [^>]*>", re.DOTALL)
SDK = Path(__file__).parents[3] / "sdk"

GUARD = """
from operant_sdk import define_service, reject

@define_service
def service():
    def guard(input, output):
        if "{word}" in output["arguments"].get("command", ""):
            return reject("{reason}")
    return {{"hooks": {{"tool.before": guard}}}}
"""


def write_skill(
    home: Path, name: str, files: dict[str, str], *, service: str = "./service.py", below: str = "skills", **told: str
) -> Path:
    """Write the folder of a skill with a service; `told` are keys of its metadata."""
    folder = home / below / name
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {"operant.service": service, **{f"operant.{key}": value for key, value in told.items()}}
    lines = "\n".join(f"  {key}: {value!r}" for key, value in metadata.items())
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: A test.\nmetadata:\n{lines}\n---\nWords.\n")
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        if not file.endswith(".py"):
            path.chmod(0o755)
    return folder


class House:
    """A running system and what tests do with its services."""

    def __init__(self, made: System) -> None:
        self.made = made

    async def call(self, call: Syscall[Any]) -> Any:
        return await self.made.kernel.call(OWNER, call)

    async def grant(self, name: str) -> ServiceInfo:
        return await self.call(ServiceGrant(service=name))

    async def info(self, name: str) -> ServiceInfo:
        return next(one for one in await self.call(ServiceList()) if one.name == name)

    async def until(self, name: str, right: Callable[[ServiceInfo], bool], seconds: float = 15) -> ServiceInfo:
        try:
            async with asyncio.timeout(seconds):
                while not right(info := await self.info(name)):
                    await asyncio.sleep(0)
                return info
        except TimeoutError:
            raise AssertionError(f"{await self.info(name)}\n{await self.log(name)}") from None

    async def newer(self, name: str, generation: int) -> ServiceInfo:
        return await self.until(name, lambda one: one.generation > generation)

    async def log(self, name: str) -> str:
        return "\n".join(await self.call(ServiceLogs(service=name)))

    async def shell(self, command: str) -> str:
        return await self.tool("shell", command=command)

    async def tool(self, name: str, /, agent: str = "", **arguments: Any) -> str:
        """Use a tool as the owner would by hand, and return its words."""
        result = await self.call(ToolInvoke(name=name, arguments=arguments, agent=agent))
        text = text_of(result.parts)
        return found[1] if (found := ENVELOPE.fullmatch(text)) else text

    async def says(self, text: str, session: str = "s", turns: int = 1) -> list[str]:
        """Say something and return what the tools of the session answered."""
        await say(self.made, text, session)
        events = await ended(self.made, turns, session)
        return [text_of(event.body.parts) for event in events if isinstance(event.body, ToolEnded)]


@asynccontextmanager
async def house(home: Path, server: ScriptedServer, more: dict[str, Any] | None = None) -> AsyncIterator[House]:
    """Run a system whose shell asks nobody."""
    agents = {"operant": {"approval": {"shell": "allow", "*": "allow"}}}
    async with system(home, server, {"agents": agents, **(more or {})}) as made:
        yield House(made)


def sockets(beginning: str) -> list[Path]:
    """Return the sockets of services whose names begin so; folders of others come and go while we look."""
    found: list[Path] = []
    for folder in Path("/tmp").glob("operant-*"):
        with suppress(FileNotFoundError):
            found += [one for one in folder.iterdir() if one.name.startswith(beginning)]
    return found


def processes(word: str) -> list[int]:
    """Return the processes that have a word on their command line."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line and b"bwrap" not in line:
                found.append(int(entry.name))
    return found
