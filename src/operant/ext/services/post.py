"""One service with all that belongs to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from operant.ext.services.declared import Declared
from operant.ext.services.journal import Journal
from operant.ext.services.keeper import Keeper
from operant.ext.services.slots import Slots
from operant.kit.text import plain
from operant.sdk import OperantError


class Post:
    """What a skill declares, the content of its folder, what keeps it running, its log and its places at hooks."""

    def __init__(self, told: Declared, keeper: Keeper, journal: Journal) -> None:
        self.told = told
        self.digest = ""
        self.fault = ""
        self.keeper = keeper
        self.journal = journal
        self.slots = Slots(keeper, told.agent)
        self.configuration: Mapping[str, str] = {}
        self._configuring = asyncio.Lock()
        self._lost: set[str] = set()

    def lose(self, lines: Iterable[str]) -> None:
        """Log what it offers and nobody gets, once as long as it is so."""
        now = set(lines)
        for line in sorted(now - self._lost):
            self.journal.say("warning", line)
        self._lost = now

    @property
    def unsettled(self) -> bool:
        """Tell whether it runs with another configuration than it should have."""
        current = self.keeper.current
        return current is not None and current.configuration != self.configuration

    async def configure(self) -> None:
        """Tell it the configuration that it should have by now; nothing when an edit was taken back meanwhile."""
        async with self._configuring:
            current = self.keeper.current
            if current is None or not self.unsettled:
                return
            try:
                await current.configure(self.configuration)
            except (OperantError, TimeoutError) as error:
                why = plain(error.sentence) if isinstance(error, OperantError) else "it did not answer"
                again = f"`operant skill reload {self.told.name}` starts it anew with it"
                self.journal.say("warning", f"it did not take its new configuration: {why}; {again}")
