"""The log of one service: what it says, and what became of it."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from pathlib import Path

from operant.kit.text import plain
from operant.sdk import Clock

MOST_BYTES = 1 << 20
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_LONGEST = 8_000
_SEPARATORS = r"[/\\\0]"
_SHORTEST = 8
"""Shorter lines of a secret are words that occur in any text."""

_log = logging.getLogger("operant.services")


class Journal:
    """A file of lines; it and the one before it are kept, each of about 1 MiB."""

    def __init__(self, name: str, folder: Path, clock: Clock) -> None:
        self.name = name
        self._path = folder / f"{re.sub(_SEPARATORS, '_', name)}.log"
        self._clock = clock
        self._rest = b""
        self._hidden: set[str] = set()

    def hide(self, secret: str) -> None:
        """Never write this, nor a line of it: what is written are lines."""
        lines = map(str.strip, secret.splitlines())
        self._hidden |= {line for line in lines if len(line) >= _SHORTEST or line == secret.strip() != ""}

    def write(self, data: bytes) -> None:
        """Take what came from the process; whole lines are kept."""
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > _LONGEST:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        for line in lines:
            self._line("out", line.decode("utf-8", "replace"))

    def say(self, level: str, text: str) -> None:
        """Take a line; warnings and worse also go to the log of the system."""
        self._line(level, text)
        if _LEVELS.get(level, 0) >= logging.WARNING:
            _log.log(_LEVELS[level], "service %s: %s", self.name, plain(self._shown(text))[:_LONGEST])

    def tail(self, lines: int) -> tuple[str, ...]:
        """Return the last lines."""
        text = self._before.read_text("utf-8") if self._before.exists() else ""
        text += self._path.read_text("utf-8") if self._path.exists() else ""
        return tuple(text.splitlines()[-lines:]) if lines > 0 else ()

    @property
    def _before(self) -> Path:
        return self._path.with_name(f"{self._path.name}.1")

    def _shown(self, text: str) -> str:
        for secret in sorted(self._hidden, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text

    def _line(self, level: str, text: str) -> None:
        at = datetime.fromtimestamp(self._clock.now() / 1e6, UTC).isoformat(timespec="milliseconds")
        words = " ".join(plain(self._shown(text)[:_LONGEST]).split("\n")).rstrip()
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size > MOST_BYTES:
                self._path.replace(self._before)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{at} {level:<7} {words}\n")
        except OSError as error:
            _log.warning("the log of the service %s cannot be written: %s", self.name, error)
