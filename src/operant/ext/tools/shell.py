"""Run commands."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated

from msgspec.structs import replace

from operant.ext.tools.output import paging
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.workspace import Workspaces, in_thread
from operant.kit import proc
from operant.kit.background import CONTROLLING
from operant.kit.beneath import FileError
from operant.kit.text import join_ends, plain
from operant.sdk import (
    CallContext,
    Command,
    FunctionTool,
    Host,
    Launch,
    Outcome,
    Output,
    Text,
    ToolResult,
    Unavailable,
    failed,
    text_of,
    tool,
)

LONGEST_S = 3600.0
# How long the kernel lets the tool itself take: the deadline of the longest command, and the end of its tree.
_TOOL_TIMEOUT_S = LONGEST_S + 30
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")
_PASSED = frozenset(
    ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
)
_SET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}
_OFFLINE = re.compile(
    r"could not resolve host|name resolution|network is unreachable|name or service not known|getaddrinfo|EAI_AGAIN",
    re.IGNORECASE,
)
_DEFAULTS = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class Shell:
    """Run commands of an agent in its workspace, with an environment of their own."""

    def __init__(
        self, host: Host, settings: ToolsSettings, workspaces: Workspaces, environment: Mapping[str, str]
    ) -> None:
        self._host = host
        self._settings = settings
        self._workspaces = workspaces
        self._base = base_environment(environment, settings.env)
        self._program = settings.shell or next((path for path in _SHELLS if os.access(path, os.X_OK)), "/bin/sh")

    async def run(self, call: CallContext, command: str, timeout_s: float, cwd: str, output: Output) -> ToolResult:
        """Run a command and tell what came of it."""
        if "\0" in command:
            return failed("A command cannot have a NUL character in it.")
        timeout_s = min(max(timeout_s, 0.1), LONGEST_S)
        room = call.agent.limits.tool_output_chars
        limits = proc.Limits(memory_bytes=max(room * 4, 4096), spool_bytes=self._settings.max_spool_bytes)
        try:
            async with self.launched(call, command, cwd) as launch:
                finished = await proc.launch(
                    launch, timeout_s=timeout_s, on_output=lambda text: output(plain(text)), limits=limits
                )
        except (FileError, proc.CannotStart) as error:
            return failed(str(error))
        except Unavailable as error:
            return failed(error.line())
        try:
            told = await self._told(finished, timeout_s, room)
        finally:
            finished.output.close()
        return _with_hint(told, call)

    @asynccontextmanager
    async def launched(
        self, call: CallContext, command: str, cwd: str, terminal: bool = False
    ) -> AsyncGenerator[Launch]:
        """Make a command ready to be started while the context is open. Raises `FileError` or `Unavailable`."""
        argv = (*(CONTROLLING if terminal else ()), self._program, "-c", command)
        env = {**self._base, **({"TERM": "xterm-256color"} if terminal else {})}
        with self._workspaces.open(call.agent) as files, files.open_dir(cwd or ".") as directory:
            where = _path_of(directory, files.path_of(cwd or "."))
            program = Command(argv=argv, cwd=where, env=env, tool="shell", terminal=terminal)
            async with self._host.confined(call, program) as launch:
                yield launch

    async def _told(self, finished: proc.Finished, timeout_s: float, room: int) -> ToolResult:
        """Make the result; an output too long for memory goes to a blob here, as the rest of us sees only its ends."""
        outcome, last = _ending(finished, timeout_s)
        if not finished.output.cut:
            text = finished.output.head
            joined = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{last}".rstrip("\n")
            return ToolResult(parts=(Text(text=joined or "(no output)"),), outcome=outcome)
        whole = await in_thread(finished.output.whole)
        blob = await self._host.blobs.put_blob(whole, "text/plain", "output.txt")
        middle = paging(blob, finished.output.total)
        text = join_ends(plain(finished.output.head), plain(finished.output.tail), room - len(last) - 2, middle)
        return ToolResult(
            parts=(Text(text=f"{text.rstrip()}\n{last}".rstrip("\n")),), outcome=outcome, artifacts=(blob,)
        )


def shell_tools(runner: Shell) -> tuple[FunctionTool, ...]:
    """Make the tool `shell`."""

    @tool(effect="external", timeout_s=_TOOL_TIMEOUT_S)
    async def shell(
        command: str,
        call: CallContext,
        output: Output,
        timeout_s: Annotated[float, "at most 3600"] = 120.0,
        cwd: Annotated[str, "relative to the workspace"] = "",
    ) -> ToolResult:
        """Run a shell command in the workspace. No input, no terminal; all that it starts ends with it."""
        return await runner.run(call, command, timeout_s, cwd, output)

    return (shell,)


def base_environment(environment: Mapping[str, str], more: tuple[str, ...]) -> dict[str, str]:
    """Return the variables that a command may have: those on the list, and nothing else."""
    passed = {
        name: value for name, value in environment.items() if name in _PASSED or name.startswith("LC_") or name in more
    }
    return {**_DEFAULTS, **passed, **_SET}


def _with_hint(told: ToolResult, call: CallContext) -> ToolResult:
    """Say why a command found no network, where that is so by the agent's settings."""
    if (
        told.outcome != "error"
        or not call.agent.sandbox
        or call.agent.network
        or not _OFFLINE.search(text_of(told.parts))
    ):
        return told
    hint = Text(text="\n[The sandbox has no network. The owner can name hosts in the agent's setting `network`.]")
    return replace(told, parts=(*told.parts, hint))


def _ending(finished: proc.Finished, timeout_s: float) -> tuple[Outcome, str]:
    if finished.timed_out:
        return "timeout", f"timed out after {timeout_s:g} s; the command and all that it started were ended"
    if finished.code is None:
        return "error", f"ended by signal {finished.signal}"
    if finished.code > 128:  # a shell or a sandbox tells of a signal in this way
        return "error", f"exit code {finished.code} (signal {finished.code - 128})"
    return ("error", f"exit code {finished.code}") if finished.code else ("ok", "")


def _path_of(directory: int, path: str) -> str:
    """Name an open directory so that it is entered as it was found; by path where the system has no such names."""
    return f"/proc/self/fd/{directory}" if sys.platform == "linux" else path
