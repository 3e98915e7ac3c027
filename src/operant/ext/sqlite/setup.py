"""Be the store of a running system."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from operant.ext.sqlite.settings import StoreSettings
from operant.ext.sqlite.store import SqliteStore, open_store
from operant.sdk import Finding, Host, Principal, StoreCheck


class Checks:
    """Carry out `store.check`."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def check(self, who: Principal, call: StoreCheck) -> tuple[Finding, ...]:
        """Look the store over."""
        return await self._store.look_over(full=call.full)


@asynccontextmanager
async def setup(host: Host, settings: StoreSettings | None) -> AsyncGenerator[None]:
    """Open the store where the state of the home is, and close it last."""
    chosen = settings or StoreSettings()
    store = await open_store(Path(host.state).parents[1], chosen.durability, host.clock)
    host.store(store)
    host.syscall(StoreCheck, Checks(store).check)
    try:
        yield
    finally:
        await store.close()
