"""Which results go to a model in an envelope."""

from __future__ import annotations

from operant.kit.envelope import enveloped, harmless
from operant.sdk import ToolResult

__all__ = ["OUTSIDE", "enveloped", "from_outside", "harmless"]

OUTSIDE = "outside"
"""Label of results whose text somebody else wrote: a web page, a mail, an answer of a server."""


def from_outside(result: ToolResult) -> bool:
    """Tell whether somebody else wrote a result's text."""
    return OUTSIDE in result.labels
