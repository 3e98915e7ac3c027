"""A whole system on a home of its own, with the scripted model over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from operant.app.build import Options, System, running
from operant.app.home import Home
from operant.kernel.records import OWNER, Event, TurnEnded
from operant.kernel.syscalls import SessionDispatch
from operant.sdk import Text
from operant.sdk.testing.server import ScriptedServer

SCRIPTED = {"defaults": {"models": ["scripted/one"]}}


@asynccontextmanager
async def system(
    home: Path,
    server: ScriptedServer,
    more: dict[str, object] | None = None,
    *,
    window: int = 32_000,
    protocol: str = "openai",
) -> AsyncIterator[System]:
    """Run everything that is shipped; `more` is configuration on top."""
    home.mkdir(mode=0o700, exist_ok=True)
    price = {"one": {"input": 1.0, "output": 2.0}}
    base = f"{server.root}/v1beta" if protocol == "gemini" else server.url
    key = {} if protocol == "openai" else {"api_key": "sk-scripted-0123456789"}
    provider = {"base_url": base, "protocol": protocol, "prices": price, "window": {"one": window}, **key}
    config = {**SCRIPTED, "providers": {"scripted": provider}, **(more or {})}
    (home / "operant.yaml").write_text(yaml.safe_dump(config))
    async with running(Home(home), Options(env={"PATH": "/usr/bin:/bin"}, overrides={})) as made:
        yield made


async def say(made: System, text: str, session: str = "s") -> None:
    await made.kernel.call(OWNER, SessionDispatch(session=session, parts=(Text(text=text),)))


async def ended(made: System, turns: int = 1, session: str = "s") -> list[Event]:
    """Wait for so many turns to end."""
    async with asyncio.timeout(20):
        while True:
            events = list(await made.kernel.store.events(session))
            if sum(isinstance(event.body, TurnEnded) for event in events) >= turns:
                return events
            await asyncio.sleep(0.005)
