# shape: table
"""Sets of tools under a name, and what no agent may exceed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from operant.app.patterns import joined, narrow
from operant.kernel.errors import Invalid
from operant.kernel.records import Permissions
from operant.kit.nearest import nearest

_RECALL: Final = ("read_output", "search_history", "read_skill")
_LOOK: Final = ("read_file", "list_files", "search_files", "web_fetch", "web_search", "tool_search", "use_tool")
_SEND: Final = ("send_*", "generate_image")
_CHANGE: Final = ("write_file", "edit_*", "apply_patch", "move_file", "delete_file", "undo_changes", "extract_archive")
_RUN: Final = (
    "shell",
    "start_process",
    "read_process",
    "write_process",
    "wait_process",
    "signal_process",
    "list_processes",
    "run_skill",
    "manage_skill",
    "spawn_agent",
)

PROFILES: Final[Mapping[str, tuple[str, ...]]] = {
    "full": ("*",),
    "coding": (*_RECALL, *_LOOK, *_SEND, *_CHANGE, *_RUN),
    "messaging": (*_RECALL, *_LOOK, *_SEND),
    "minimal": _RECALL,
}
"""`coding` reads, changes and runs; `messaging` reads, looks things up and sends; `minimal` only recalls."""


def check_profile(name: str, own: Mapping[str, tuple[str, ...]]) -> None:
    """Raise `Invalid` for a profile that there is not."""
    known = {**PROFILES, **own}
    if name and name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near!r}? " if near else ""
        raise Invalid(f"there is no profile {name!r}; {hint}there are: {', '.join(sorted(known))}")


def expand(chosen: Permissions, profile: str, own: Mapping[str, tuple[str, ...]]) -> Permissions:
    """Return what both a profile and an agent's own rules allow. Raises `Invalid`."""
    if not profile:
        return chosen
    check_profile(profile, own)
    return narrow(chosen, tools={**PROFILES, **own}[profile])


def bounded(chosen: Permissions, boundary: Permissions) -> Permissions:
    """Return what an agent may use within a boundary, whatever its own file says."""
    within = narrow(chosen, tools=boundary.tools, skills=boundary.skills)
    return msgspec.structs.replace(within, deny=joined(within.deny, boundary.deny))
