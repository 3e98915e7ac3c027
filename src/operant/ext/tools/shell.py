"""Run commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated

from operant.ext.tools.output import paging
from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.workspace import Workspaces, in_thread
from operant.kit import proc
from operant.kit.beneath import FileError
from operant.kit.text import join_ends, plain
from operant.sdk import CallContext, FunctionTool, Host, Outcome, Output, Record, Text, ToolResult, failed, tool

LONGEST_S = 3600.0
# How long the kernel lets the tool itself take: the deadline of the longest command, and the end of its tree.
_TOOL_TIMEOUT_S = LONGEST_S + 30
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")
_PASSED = frozenset(
    ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
)
_SET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}
_DEFAULTS = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class Launch(Record):
    """Exactly what is executed for a command: the place where a sandbox goes around it."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]


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
            with self._workspaces.open(call.agent) as files, files.open_dir(cwd or ".") as directory:
                launch = await self._prepared(call, command, _path_of(directory, files.path_of(cwd or ".")))
                finished = await proc.run(
                    launch.argv,
                    cwd=launch.cwd,
                    env=launch.env,
                    timeout_s=timeout_s,
                    on_output=lambda text: output(plain(text)),
                    limits=limits,
                )
        except (FileError, proc.CannotStart) as error:
            return failed(str(error))
        try:
            return await self._told(finished, timeout_s, room)
        finally:
            finished.output.close()

    async def _prepared(self, call: CallContext, command: str, cwd: str) -> Launch:
        env = await self._host.environment(call.session, call.agent.name, "shell", dict(self._base))
        return Launch(argv=(self._program, "-c", command), cwd=cwd, env=env)

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


def shell_tools(
    host: Host, settings: ToolsSettings, workspaces: Workspaces, environment: Mapping[str, str]
) -> tuple[FunctionTool, ...]:
    """Make the tool `shell`."""
    runner = Shell(host, settings, workspaces, environment)

    @tool(effect="external", timeout_s=_TOOL_TIMEOUT_S)
    async def shell(
        command: str,
        call: CallContext,
        output: Output,
        timeout_s: Annotated[float, "at most 3600"] = 120.0,
        cwd: Annotated[str, "relative to the workspace"] = "",
    ) -> ToolResult:
        """Run a shell command in the workspace. No input, no terminal; background processes end with it."""
        return await runner.run(call, command, timeout_s, cwd, output)

    return (shell,)


def base_environment(environment: Mapping[str, str], more: tuple[str, ...]) -> dict[str, str]:
    """Return the variables that a command may have: those on the list, and nothing else."""
    passed = {
        name: value for name, value in environment.items() if name in _PASSED or name.startswith("LC_") or name in more
    }
    return {**_DEFAULTS, **passed, **_SET}


def _ending(finished: proc.Finished, timeout_s: float) -> tuple[Outcome, str]:
    if finished.timed_out:
        return "timeout", f"timed out after {timeout_s:g} s; the command and all that it started were ended"
    if finished.code is None:
        return "error", f"ended by signal {finished.signal}"
    return ("error", f"exit code {finished.code}") if finished.code else ("ok", "")


def _path_of(directory: int, path: str) -> str:
    """Name an open directory so that it is entered as it was found; by path where the system has no such names."""
    return f"/proc/self/fd/{directory}" if sys.platform == "linux" else path
