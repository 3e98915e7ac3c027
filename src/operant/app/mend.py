"""Mend a home whose store is damaged."""

from __future__ import annotations

from operant.app.home import Home
from operant.kernel.ports import Clock


def mend_store(home: Home, clock: Clock) -> str:
    """Save what can be read of the store into a new one, keep the old file, and say what was done.

    Raises `Conflict` when a system runs on the home, `Broken` when nothing can be read; then nothing was changed.
    """
    from operant.ext.sqlite.salvage import salvage

    with home.lock(clock.now):
        if not (home.state / "operant.db").exists():
            return "There is no store yet: nothing to mend."
        saved = salvage(home.state, str(clock.now()))
    lost = f", {saved.lost:,} could not be read" if saved.lost else ""
    return f"Saved {saved.events:,} events of {saved.sessions:,} sessions{lost}; the old file is state/{saved.kept_as}."
