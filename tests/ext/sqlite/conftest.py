"""A store in a directory of its own, and surgery on its files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from operant.ext.sqlite.store import SqliteStore, open_store
from operant.sdk.testing.fakes import ManualClock
from tests.contract.store_parts import NOW
from tests.ext.sqlite.surgery import Opener


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def opened_store(state: Path, clock: ManualClock) -> Opener:
    """Open the store of this test, as often as it likes."""

    @asynccontextmanager
    async def opener() -> AsyncIterator[SqliteStore]:
        async with asyncio.timeout(2):  # whatever was done to its files
            store = await open_store(state, "process", clock)
        async with store:
            yield store

    return opener


@pytest.fixture
async def store(opened_store: Opener) -> AsyncIterator[SqliteStore]:
    async with opened_store() as made:
        yield made
