"""Find what somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most like `word`, or an empty text when none is."""
    import difflib  # 6 ms, and needed only when something is wrong

    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return found[0] if found else ""
