"""Where files of a workspace are imported and used: a process of its own, in the agent's sandbox."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from operant.ext.custom.runner import Called
from operant.kit import proc
from operant.kit.text import plain
from operant.sdk import Agent, CallContext, Command, Host, Json, OperantError, Text, ToolResult, ToolSpec

DESCRIBE_S = 20.0
_LONGEST_S = 3600.0
_MEMORY_BYTES = 4_000_000
_MOST_ARGUMENTS = 120_000
"""Bytes of arguments: they travel as one argument of a process, and the system has no room for more."""
_SHOWN_CHARS = 2000
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}


class CannotUse(Exception):
    """Say in one sentence what is wrong with a file."""


class File(NamedTuple):
    """A file in one of its states."""

    path: str
    digest: str


class Bench:
    """Run `runner.py` on a file."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def describe(self, agent: Agent, file: File) -> tuple[ToolSpec, ...]:
        """Return the tools of a file; it is imported where it can change nothing. Raises `CannotUse`."""
        call = CallContext(call_id="", session="", turn="", agent=agent, key="")
        answer = await self._run(call, ("describe", *file), DESCRIBE_S, lambda text: None, inert=True)
        try:
            specs = msgspec.json.decode(answer, type=tuple[ToolSpec, ...])
        except msgspec.MsgspecError as error:
            raise CannotUse(f"it describes its tools in a way that cannot be read: {error}") from error
        return tuple(msgspec.structs.replace(spec, deferred=True, forwards=False) for spec in specs)

    async def use(
        self, call: CallContext, spec: ToolSpec, file: File, arguments: Json, show: Callable[[str], None]
    ) -> ToolResult:
        """Use a tool. Raises `CannotUse`."""
        given = msgspec.json.encode(arguments).decode()
        if len(given.encode()) > _MOST_ARGUMENTS:
            raise CannotUse(f"the arguments are larger than {_MOST_ARGUMENTS:,} bytes; pass a file's name instead")
        about = Called(
            call_id=call.call_id,
            session=call.session,
            turn=call.turn,
            agent=call.agent.name,
            workspace=call.agent.workspace,
            key=call.key,
            repeated=call.repeated,
        )
        rest = ("run", *file, spec.name, given, msgspec.json.encode(about).decode())
        answer = await self._run(call, rest, min(spec.timeout_s, _LONGEST_S), show, inert=False)
        try:
            result = msgspec.json.decode(answer, type=ToolResult)
        except msgspec.MsgspecError as error:
            raise CannotUse(f"it gave back what is no result: {error}") from error
        words = tuple(
            part for part in result.parts if isinstance(part, Text)
        )  # it cannot know of blobs, so it names none
        return ToolResult(parts=words, outcome="ok" if result.outcome == "ok" else "error")

    async def _run(
        self, call: CallContext, rest: tuple[str, ...], timeout_s: float, show: Callable[[str], None], *, inert: bool
    ) -> bytes:
        """Return the last line of the runner."""
        seal = secrets.token_hex(16)
        argv = (sys.executable, "-I", "-m", "operant.ext.custom.runner", seal, *rest)
        cwd = call.agent.workspace
        command = Command(argv=argv, cwd=cwd, env=dict(_ENVIRONMENT), tool="custom", inert=inert)
        try:
            async with self._host.confined(call, command) as launch:
                finished = await proc.launch(
                    launch,
                    timeout_s=timeout_s,
                    on_output=lambda text: None if seal in text else show(plain(text)),
                    limits=proc.Limits(memory_bytes=_MEMORY_BYTES, spool_bytes=0),
                )
        except (proc.CannotStart, OperantError) as error:
            raise CannotUse(error.line() if isinstance(error, OperantError) else str(error)) from error
        try:
            return _answer(finished, seal, timeout_s)
        finally:
            finished.output.close()


def _answer(finished: proc.Finished, seal: str, timeout_s: float) -> bytes:
    text = finished.output.tail if finished.output.cut else finished.output.head
    said, found, answer = text.rpartition(f"\n{seal}")
    if finished.timed_out:
        raise CannotUse(f"it took longer than {timeout_s:g} s and was ended")
    if not found:
        words = plain(said or answer).strip()[-_SHOWN_CHARS:]
        raise CannotUse(f"it ended with code {finished.code}: {words}")
    return answer.encode()
