"""One command of the system, asked and understood."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import NamedTuple

from operant.kernel.errors import Unavailable
from operant.kit import proc

INSTEAD = "Run `operant serve --supervised` instead: it keeps itself running."
_PATIENCE_S = 120.0
"""Longer than systemd itself waits for a start or a stop."""


class Said(NamedTuple):
    """What a program said, and its exit code."""

    code: int | None
    text: str


class Program:
    """A command by its name; `env` is its whole environment."""

    def __init__(self, name: str, env: Mapping[str, str]) -> None:
        self._name = name
        self._env = env

    async def ask(self, *words: str) -> Said:
        """Run it and return what it said. Raises `Unavailable` when there is no such program, or it hangs."""
        found = shutil.which(self._name, path=self._env.get("PATH", os.defpath))
        if not found:
            raise Unavailable(f"There is no {self._name} here.", INSTEAD)
        env = {**self._env, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}
        try:
            done = await proc.run([found, *words], cwd="/", env=env, timeout_s=_PATIENCE_S)
        except proc.CannotStart as error:
            raise Unavailable(str(error), INSTEAD) from error
        done.output.close()
        if done.timed_out:
            raise Unavailable(f"{self._name} {' '.join(words)} did not answer in {_PATIENCE_S:g} s.")
        return Said(done.code, done.output.head.strip())

    async def order(self, *words: str, hint: str = "") -> None:
        """Run it. Raises `Unavailable` with its own words when it does not succeed."""
        said = await self.ask(*words)
        if said.code != 0:
            why = " ".join(said.text.split()) or f"exit code {said.code}"
            raise Unavailable(f"{self._name} {' '.join(words)} failed: {why.rstrip('.')}.", hint)
