"""Be the store of a running system."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from operant.ext.sqlite.settings import StoreSettings
from operant.ext.sqlite.store import SqliteStore, open_store
from operant.sdk import Clock, Finding, Host, OperantError, Principal, StoreCheck

_DAY_S = 86_400.0
_log = logging.getLogger("operant.store")


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
    async with await open_store(Path(host.state).parents[1], chosen.durability, host.clock) as store:
        host.store(store)
        host.syscall(StoreCheck, Checks(store).check)
        async with asyncio.TaskGroup() as group:
            sweeping = group.create_task(_sweep(store, host.clock), name="sweep of the store")
            try:
                yield
            finally:
                sweeping.cancel()


async def _sweep(store: SqliteStore, clock: Clock) -> None:
    """Once a day remove what nobody needs any more."""
    while True:
        await clock.sleep(_DAY_S)
        try:
            await store.collect()
        except OperantError as error:
            _log.info("the sweep was put off: %s", error.sentence)
