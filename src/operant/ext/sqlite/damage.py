"""The damage that was found: kept in memory at once, and in the database as soon as it can be written."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from operant.ext.sqlite.ledger import Extra
from operant.kit.sqlite import Execute
from operant.sdk import Clock, Damage

_MOST = 1_000
_log = logging.getLogger("operant.store")


class Damages:
    """A list that any thread adds to; what is noted twice stands there once."""

    def __init__(self, clock: Clock, enqueue: Callable[[Extra], None]) -> None:
        self._clock = clock
        self._enqueue = enqueue
        self._found: dict[tuple[str, str], tuple[str, Damage]] = {}
        self._lock = threading.Lock()

    def load(self, run: Execute) -> None:
        """Take over what earlier processes found."""
        with self._lock:
            for what, where, found, action, session in run("SELECT * FROM damages ORDER BY found"):
                self._found[what, where] = session, Damage(what=what, where=where, found=found, action=action)

    def note(self, what: str, where: str, action: str, session: str = "") -> bool:
        """Add a damage; False when it was known, or when there are too many to list."""
        now = self._clock.now()
        with self._lock:
            if (what, where) in self._found or len(self._found) >= _MOST:
                return False
            self._found[what, where] = session, Damage(what=what, where=where, found=now, action=action)
        _log.error("damage: %s, %s. %s", what, where, action)
        sql = "INSERT OR IGNORE INTO damages VALUES (?, ?, ?, ?, ?)"
        self._enqueue(lambda run: run(sql, (what, where, now, action, session)))
        return True

    def forget(self, session: str) -> None:
        """Drop what was found in a session that is erased."""
        with self._lock:
            self._found = {key: found for key, found in self._found.items() if not session or found[0] != session}

    def list(self) -> tuple[Damage, ...]:
        """Return what was found so far."""
        with self._lock:
            return tuple(damage for _, damage in self._found.values())

    def keep_aside(self, session: str, seq: int, raw: str) -> None:
        """Keep what an unreadable event's row holds, for somebody who can make sense of it."""
        now = self._clock.now()
        sql = "INSERT OR IGNORE INTO quarantine VALUES (?, ?, ?, ?)"
        self._enqueue(lambda run: run(sql, (session, seq, now, raw)))

    def mark_session(self, session: str) -> None:
        """Let lists show that a session cannot be read."""
        self._enqueue(lambda run: run("UPDATE sessions SET damaged = 1 WHERE key = ?", (session,)))
