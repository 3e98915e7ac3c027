"""A host with just what the tools use, and a way to call a tool as the kernel does."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.setup import setup
from operant.kit.clock import SystemClock
from operant.kit.ids import SystemIds
from operant.sdk import (
    Agent,
    BlobRef,
    CallContext,
    Command,
    Hit,
    KvDelete,
    KvGet,
    KvList,
    KvSet,
    Launch,
    Limits,
    MessageSend,
    NotFound,
    Queued,
    SessionAppend,
    SessionSearch,
    ToolAfterInput,
    ToolAfterOutput,
    ToolResult,
    text_of,
)


class MemoryBlobs:
    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def put_blob(self, data: bytes, media_type: str = "application/octet-stream", name: str = "") -> BlobRef:
        digest = hashlib.sha256(data).hexdigest()
        self.kept[digest] = data
        return BlobRef(digest=digest, size=len(data), media_type=media_type, name=name)

    async def get_blob(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        if digest not in self.kept:
            raise NotFound(f"There is no blob {digest[:12]}.")
        return self.kept[digest][offset : offset + limit if limit else None]


class FakeHost:
    """Collect what is registered; keep values and blobs in memory."""

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()
        self.tools: dict[str, Any] = {}
        self.values: dict[tuple[str, str], str] = {}
        self.hits: tuple[Hit, ...] = ()
        self.searched: list[SessionSearch] = []
        self.sent: list[MessageSend] = []
        self.clock = SystemClock()
        self.ids = SystemIds(self.clock.now)
        self.state = ""
        self.noted: list[SessionAppend] = []
        self.hooks: dict[str, Any] = {}
        self.more_environment: dict[str, str] = {}
        self.after: Any = None
        self.on_set: Callable[[str], object] = lambda key: None

    def tool(self, tool: Any) -> None:
        self.tools[tool.spec.name] = tool

    def hook(self, point: Any, handler: Any, **how: Any) -> None:
        if point.name == "tool.after":
            self.after = handler
        else:
            self.hooks[point.name] = handler

    async def call(self, call: Any) -> Any:
        match call:
            case KvGet(namespace=namespace, key=key):
                return self.values.get((namespace, key))
            case KvSet(namespace=namespace, key=key, value=value):
                self.on_set(key)
                self.values[namespace, key] = value
                return None
            case KvList(namespace=namespace, prefix=prefix):
                return {
                    key: self.values[space, key]
                    for space, key in self.values
                    if space == namespace and key.startswith(prefix)
                }
            case KvDelete(namespace=namespace, key=key):
                self.values.pop((namespace, key), None)
                return None
            case MessageSend():
                self.sent.append(call)
                return Queued(outbox_id=f"o{len(self.sent)}")
            case SessionAppend():
                self.noted.append(call)
                return None
            case SessionSearch():
                self.searched.append(call)
                return self.hits
            case _:
                raise AssertionError(f"unexpected syscall {call}")

    async def environment(self, session: str, agent: str, tool: str, base: dict[str, str]) -> dict[str, str]:
        return {**base, **self.more_environment}

    @asynccontextmanager
    async def confined(self, call: CallContext, command: Command) -> AsyncGenerator[Launch]:
        """Run commands as they are: the sandbox has tests of its own."""
        env = await self.environment(call.session, call.agent.name, command.tool, dict(command.env))
        yield Launch(argv=command.argv, cwd=command.cwd, env=env)


class Bench:
    """Call tools of one agent in one workspace."""

    def __init__(self, workspace: Path, host: FakeHost) -> None:
        self.workspace = workspace
        self.host = host
        self.agent = Agent(name="operant", workspace=str(workspace), limits=Limits(tool_output_chars=4000))
        self.live: list[str] = []
        self.calls = 0

    async def call(
        self, name: str, session: str = "s1", key: str = "", repeated: bool = False, turn: str = "t1", **arguments: Any
    ):
        """Call a tool; each call has a key of its own unless one is given."""
        tool = self.host.tools[name]
        self.calls += 1
        key = key or f"k{self.calls}"
        context = CallContext(call_id="c1", session=session, turn=turn, agent=self.agent, key=key, repeated=repeated)
        result = await tool.run(context, tool.check(arguments), self.live.append)
        changed = await self.host.after(
            ToolAfterInput(session=session, agent=self.agent, call_id="c1", name=name, arguments=arguments),
            ToolAfterOutput(result=result),
        )
        return Said(changed.result if changed else result)


class Said:
    """A tool's result, easy to look at."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result
        self.outcome = result.outcome
        self.text = text_of(result.parts)
        self.artifacts = result.artifacts
        self.blobs = [part for part in result.parts if isinstance(part, BlobRef)]

    def __repr__(self) -> str:
        return f"{self.outcome}: {self.text[:300]}"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "workspace"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "shared"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside the workspace that nobody may see or change."""
    made = tmp_path / "secret.txt"
    made.write_text("CANARY")
    return made


@pytest.fixture
async def bench(workspace: Path, shared: Path) -> AsyncGenerator[Bench]:
    host = FakeHost()
    host.state = str(workspace.parent)
    async with setup(host, ToolsSettings(shared=str(shared), search_timeout_s=2.0)):  # type: ignore[arg-type]
        yield Bench(workspace, host)
