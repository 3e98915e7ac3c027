"""The scripted model, for systems with services."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from operant.sdk.testing.server import ScriptedServer


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer()
    async with made.serving():
        yield made
