"""The seed's routes answer its own curl lines; what goes beyond them works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from operant.sdk.testing.server import ScriptedServer
from tests.journey.gateway import Served, served

SCRIPT = {"files": [{"text": "Here are your files."}]}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Served]:
    server = ScriptedServer(SCRIPT)
    async with server.serving(), served(tmp_path / "home", server) as made:
        yield made


async def test_chat_answers(house: Served) -> None:
    answer = await house.post("/api/chat/my-session", {"message": "@files List the files in my workspace"})
    assert answer["response"] == "Here are your files."
