"""An extension for the crash tests: tools whose effects can be counted, and a platform that is a file."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from operant.sdk import Address, CallContext, Extension, Host, OutboxItem, Receipt, text_of, tool

extension = Extension(name="crash", setup="tests.crash.parts:setup")


class FilePlatform:
    """A chat platform that keeps a line a message and can tell which it has."""

    name = "file"
    exact = False
    pull = False

    def __init__(self, path: Path) -> None:
        self._path = path

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        yield

    async def send(self, item: OutboxItem, *, repeat: bool) -> Receipt:
        note(self._path, f"{item.id} {'repeat' if repeat else 'once'} {item.address.chat} {text_of(item.parts)}")
        return Receipt(platform_id=item.id)

    async def find(self, item: OutboxItem) -> Receipt | None:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return Receipt(platform_id=item.id) if any(line.startswith(item.id) for line in lines) else None

    async def notice(self, address: Address, text: str) -> None:
        return None


def note(path: Path, line: str) -> None:
    """Add a line in one write, so that a kill leaves all of it or nothing."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (line + "\n").encode())
    finally:
        os.close(handle)


@asynccontextmanager
async def setup(host: Host, settings: None) -> AsyncGenerator[None]:
    where = Path(host.state)

    @tool(effect="idempotent")
    async def keep(name: str, call: CallContext) -> str:
        """Keep something; the same key is kept once."""
        (where / f"kept-{call.key}").write_text(name)
        return f"kept {name}"

    @tool(effect="external")
    async def push(name: str, call: CallContext) -> str:
        """Push something out into the world."""
        note(where / "pushed", f"{call.session} {call.call_id} {name}")
        return f"pushed {name}"

    host.tool(keep)
    host.tool(push)
    host.channel(FilePlatform(where / "platform"))
    yield
