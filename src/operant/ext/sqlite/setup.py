"""Be the store of a running system."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from operant.ext.sqlite.settings import StoreSettings
from operant.ext.sqlite.store import open_store
from operant.sdk import Host


@asynccontextmanager
async def setup(host: Host, settings: StoreSettings | None) -> AsyncGenerator[None]:
    """Open the store where the state of the home is, and close it last."""
    chosen = settings or StoreSettings()
    store = await open_store(Path(host.state).parents[1], chosen.durability, host.clock)
    host.store(store)
    try:
        yield
    finally:
        await store.close()
