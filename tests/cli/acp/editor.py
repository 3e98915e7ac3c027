"""An editor: the client side of the SDK, talking to the real command, with every line that it says kept."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import acp
import yaml
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

PATIENCE_S = 30.0


@dataclass
class Editor:
    """Keep what is shown; `answers` are the options that are chosen, one a question, `cancelled` closes the dialog."""

    answers: list[str] = field(default_factory=list)
    updates: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    options: list[Any] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def session_update(self, session_id: str, update: Any, **meta: Any) -> None:
        async with self._changed:
            self.updates.append((session_id, update))
            self._changed.notify_all()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **meta: Any) -> Any:
        async with self._changed:
            self.asked.append(tool_call)
            self.options = options
            self._changed.notify_all()
        if not self.answers:
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if answer == "nonsense":
            return {"outcome": {"outcome": "perhaps"}}
        if answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = next(one.option_id for one in options if one.kind == answer)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until something has been shown or asked."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(true)

    def of(self, kind: str, session: str = "") -> list[Any]:
        """Return the updates of a kind."""
        return [one for key, one in self.updates if one.session_update == kind and session in ("", key)]

    def text(self, session: str = "", kind: str = "agent_message_chunk") -> str:
        """Return what was said."""
        return "".join(one.content.text for one in self.of(kind, session))


@dataclass
class Seen:
    """A running command, the editor that it serves, and the lines that it wrote."""

    editor: Editor
    agent: Any
    process: asyncio.subprocess.Process
    lines: list[bytes]

    async def begin(self, cwd: Path | str, **more: Any) -> str:
        return (await self.agent.new_session(cwd=str(cwd), **more)).session_id

    async def ask(self, session: str, *words: Any) -> Any:
        blocks = [acp.text_block(one) if isinstance(one, str) else one for one in words]
        async with asyncio.timeout(PATIENCE_S):
            return await self.agent.prompt(session_id=session, prompt=blocks)


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "OPERANT_HOME": str(home), "HOME": str(home.parent), "TZ": "UTC"}


def prepare(home: Path, url: str, **approval: str) -> None:
    """Write the settings of a home whose model is the scripted server."""
    home.mkdir(mode=0o700, exist_ok=True)
    settings = {
        "defaults": {"models": ["scripted/one", "scripted/two"], "approval": approval},
        "providers": {"scripted": {"base_url": url, "protocol": "openai"}},
    }
    (home / "operant.yaml").write_text(yaml.safe_dump(settings))


@asynccontextmanager
async def editing(home: Path, *words: str, answers: list[str] | None = None) -> AsyncIterator[Seen]:
    """Run `operant acp` and connect to it; whatever it wrote to standard output was of the protocol."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "operant", "acp", *words,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment(home), limit=2**26,
    )  # fmt: skip
    assert process.stdin is not None
    lines: list[bytes] = []
    reader = asyncio.StreamReader(limit=2**26)
    editor = Editor(answers=answers or [])
    async with asyncio.TaskGroup() as group:
        copying = group.create_task(copied(process, reader, lines))
        agent = acp.connect_to_agent(cast(Any, editor), process.stdin, reader, use_unstable_protocol=True)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            yield Seen(editor, agent, process, lines)
        finally:
            await agent.close()
            if process.returncode is None:
                process.stdin.close()
            async with asyncio.timeout(PATIENCE_S):
                await process.wait()
                await copying
    for line in lines:
        assert json.loads(line)["jsonrpc"] == "2.0", line


async def copied(process: asyncio.subprocess.Process, reader: asyncio.StreamReader, lines: list[bytes]) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        lines.append(line)
        reader.feed_data(line)
    reader.feed_eof()
