"""Sites on loopback that stand for the web, and a host whose egress knows them by name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from operant.ext.web.settings import WebSettings
from operant.ext.web.setup import setup
from operant.kit.http import Http
from operant.sdk import Agent, CallContext, Limits, ToolResult, text_of
from operant.sdk.testing.fakes import ManualClock
from operant.sdk.testing.store import MemoryStore
from tests.kit.web import PRIVATE, PUBLIC, egress


class WebHost:
    """As much of a host as the web needs; `ok.test` is public, `localhost` is not."""

    def __init__(self, folder: Path, http: Http) -> None:
        self.clock = ManualClock(0)
        self.blobs = MemoryStore(self.clock)
        self.state = str(folder)
        self.http = http
        self.keys: dict[str, str] = {}
        self.tools: dict[str, Any] = {}

    def tool(self, tool: Any) -> None:
        self.tools[tool.spec.name] = tool

    def variable(self, name: str) -> str | None:
        return self.keys.get(name)

    async def call(self, name: str, session: str = "s", room: int = 16_000, **arguments: Any) -> ToolResult:
        agent = Agent(name="operant", limits=Limits(tool_output_chars=room))
        call = CallContext(call_id="c", session=session, turn="t", agent=agent, key="k")
        tool = self.tools[name]
        return await tool.run(call, tool.check(arguments), lambda text: None)

    async def fetch(self, url: str, **arguments: Any) -> str:
        return text_of((await self.call("web_fetch", url=url, **arguments)).parts)

    async def search(self, query: str = "bread", **arguments: Any) -> str:
        return text_of((await self.call("web_search", query=query, **arguments)).parts)


@asynccontextmanager
async def web(folder: Path, settings: WebSettings | None = None) -> AsyncIterator[WebHost]:
    async with Http(egress(ok_test=[PUBLIC], localhost=[PRIVATE])) as http:
        host = WebHost(folder, http)
        async with setup(host, settings or WebSettings()):  # type: ignore[arg-type]
            yield host


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[WebHost]:
    async with web(tmp_path) as host:
        yield host
