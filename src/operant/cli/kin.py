"""Who works for whom, and who is a copy of whom."""

from __future__ import annotations

from operant.kernel.records import SessionInfo


def works_for_another(info: SessionInfo) -> bool:
    """Tell a sub-agent's session from a copy, which has a parent too."""
    return bool(info.parent) and info.key.startswith("agents/") and "/" in info.agent
