"""The configuration as its file stands now; an edit that is not valid leaves what was valid before."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

from msgspec import Meta

from operant.app.config import FILE, Config
from operant.app.plain import Print, fingerprint
from operant.kernel.errors import OperantError
from operant.sdk import LIVE

_log = logging.getLogger("operant.agents")


class Current:
    """What is in force; agents, defaults and bindings are taken from here, the other sections are read at the start."""

    def __init__(self, file: Path, config: Config, read: Callable[[], Config]) -> None:
        self._file = file
        self._begun = self._config = config
        self._read = read
        self._print: Print = fingerprint(file)
        self.problem = ""

    def now(self) -> Config:
        """Return the last valid configuration; the file is read again when it is not as it was."""
        found = fingerprint(self._file)
        if found != self._print:
            self._print = found
            try:
                self._config, self.problem = self._read(), ""
            except OperantError as error:
                self.problem = error.sentence
                _log.warning("the settings stay as they were: %s", error.sentence)
        return self._config

    def late(self) -> str:
        """Say which sections have changed and count only when Operant starts again; an empty text for none."""
        then, now = self._begun, self.now()
        keys = {*then.sections, *now.sections}
        names = sorted(key for key in keys if _differ(then.sections.get(key), now.sections.get(key)))
        parts = (("extensions", then.extensions, now.extensions), ("egress", then.egress, now.egress))
        names += [key for key, before, after in (*parts, ("sandbox", then.sandbox, now.sandbox)) if before != after]
        return f"{FILE}: {', '.join(names)}: changed, and counts from the next start on" if names else ""


def _differ(then: Any, now: Any) -> bool:
    """Tell whether two sections differ in more than what is taken up as they run; none is one without settings."""
    kind = (then if now is None else now).__class__
    then, now = (kind() if one is None else one for one in (then, now))
    return any(getattr(then, name) != getattr(now, name) for name in _lasting(kind))


def _lasting(kind: type[Any]) -> list[str]:
    """Return the settings that are read at the start and then no more."""
    hints = get_type_hints(kind, include_extras=True)
    return [name for name, hint in hints.items() if not any(map(_is_live, getattr(hint, "__metadata__", ())))]


def _is_live(note: Any) -> bool:
    return isinstance(note, Meta) and bool((note.extra or {}).get(LIVE))
