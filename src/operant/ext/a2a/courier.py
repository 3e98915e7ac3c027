"""Carry letters to other homes, and wait for what becomes of them, across restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from operant.ext.a2a.letter import Letter
from operant.ext.a2a.letters import Letters
from operant.ext.a2a.remote import Barred, Remote, There
from operant.sdk import Host, OperantError, Refused, Unavailable

PAUSE_S = 1.0
LONGEST_S = 60.0

_log = logging.getLogger("operant.a2a")


class Courier:
    """One task for each letter that is away and owed an answer."""

    def __init__(self, host: Host, letters: Letters, remote: Remote) -> None:
        self._host = host
        self._letters = letters
        self._remote = remote
        self._group = asyncio.TaskGroup()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._working = False
        self.arrived: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Courier:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        self._working = False
        for task in self._tasks.values():
            task.cancel()
        await self._group.__aexit__(None, None, None)

    async def start(self) -> None:
        """Take up what the last life has left."""
        self._working = True
        for letter in await self._letters.owed():
            self.watch(letter)

    def check(self, to: str) -> None:
        """Raise `NotFound` for a receiver at a peer that there is not."""
        self._remote.peer(to)

    def watch(self, letter: Letter) -> None:
        """Wait for the answer to a letter."""
        if self._working and letter.away and letter.remote and letter.result is None and letter.id not in self._tasks:
            task = self._group.create_task(self._wait(letter))
            self._tasks[letter.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(letter.id, None))

    async def carry(self, letter: Letter, text: str) -> Letter:
        """Hand a letter over; return it as it stands then. What cannot be handed over is no letter."""
        await self._letters.put(letter, owed=letter.kind == "wake")
        try:
            there = await self._sent(letter, text)
        except OperantError:
            await self._letters.drop(letter)
            raise
        after = _heard(letter, there)
        await self._letters.put(after, owed=letter.kind == "wake")
        self.watch(after)
        if after.result is not None:
            self.arrived()
        return after

    async def _sent(self, letter: Letter, text: str) -> There:
        try:
            return await self._remote.send(letter, text)
        except Unavailable:
            return await self._remote.send(letter, text)  # once more: a home of ours takes the same one once

    async def _wait(self, letter: Letter) -> None:
        pause = PAUSE_S
        until = letter.deadline
        while self._host.clock.now() < until:
            try:
                there = await self._remote.get(letter)
                if there.text is not None:
                    await self._note(letter, there)
                    return
                await self._remote.listen(letter)
                pause = PAUSE_S
            except OperantError as error:
                if isinstance(error, Refused) and not isinstance(error, Barred):
                    await self._note(letter, There(id=letter.remote, text=f"({error.line()})"))
                    return
                _log.info("%s is asked again in %g s: %s", letter.to, pause, error.line())
                pause = min(2 * pause, LONGEST_S)
            await self._host.clock.sleep(pause)

    async def _note(self, letter: Letter, there: There) -> None:
        """Write down what became of a letter, on what it is by now."""
        now = await self._letters.get(letter.id) or letter
        await self._letters.put(_heard(now, there), owed=True)
        self.arrived()


def _heard(letter: Letter, there: There) -> Letter:
    return msgspec.structs.replace(letter, remote=there.id, result=there.text)
