"""A daemon's system in this process, listening, with the scripted model behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from operant.app.build import Options, System
from operant.app.daemon import hosted
from operant.app.home import Home
from operant.kernel.records import OWNER
from operant.kernel.syscalls import LoginOpen, TokenAdd
from operant.sdk.testing.server import ScriptedServer


@dataclass
class Served:
    """A listening system: `url` has no slash at its end, `token` is the owner's, `http` carries it."""

    system: System
    url: str
    token: str
    http: aiohttp.ClientSession

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def ws(self) -> str:
        return self.url.replace("http", "ws", 1)

    async def get(self, path: str, status: int = 200, **options: Any) -> Any:
        async with self.http.get(self.url + path, **options) as response:
            assert response.status == status, await response.text()
            return await response.json(content_type=None)

    async def post(self, path: str, body: Any = None, status: int = 200, **options: Any) -> Any:
        async with self.http.post(self.url + path, json=body, **options) as response:
            assert response.status == status, await response.text()
            return await response.json(content_type=None)

    async def login_code(self) -> str:
        return (await self.system.kernel.call(OWNER, LoginOpen())).rpartition("=")[2]

    async def add_token(self, name: str, *scopes: str, days: int = 0) -> str:
        return (await self.system.kernel.call(OWNER, TokenAdd(name=name, scopes=scopes, days=days))).token


@asynccontextmanager
async def served(
    home: Path, server: ScriptedServer, more: dict[str, object] | None = None, *, port: int = 0
) -> AsyncIterator[Served]:
    """Run everything that is shipped, on a free port; `more` is configuration on top."""
    home.mkdir(mode=0o700, exist_ok=True)
    provider = {"base_url": server.url, "protocol": "openai", "prices": {"one": {"input": 1.0, "output": 2.0}}}
    config: dict[str, Any] = {
        "defaults": {"models": ["scripted/one"]},
        "providers": {"scripted": provider},
        "gateway": {"port": port},
    }
    for key, value in (more or {}).items():
        config[key] = {**config.get(key, {}), **value} if isinstance(value, dict) else value
    (home / "operant.yaml").write_text(yaml.safe_dump(config))
    options = Options(env={"PATH": "/usr/bin:/bin"}, overrides={}, role="daemon")
    async with hosted(Home(home), options) as system:
        link = await system.kernel.call(OWNER, LoginOpen())
        token = (home / "state" / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            yield Served(system=system, url=link.partition("/#")[0], token=token, http=http)
