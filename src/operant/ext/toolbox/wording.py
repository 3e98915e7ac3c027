"""What a search says."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from operant.sdk import ToolSpec

_MOST_NAMES = 60


def found(query: str, specs: Sequence[ToolSpec], all_specs: Sequence[ToolSpec]) -> str:
    """Show tools with all that is needed to use them; where nothing fits, the names of all there are."""
    if specs:
        return "\n\n".join(["Call these through use_tool.", *map(_shown, specs)])
    if not all_specs:
        return "There are no further tools."
    names = sorted(spec.name for spec in all_specs)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"No tool fits {query!r}. There are: {', '.join(names[:_MOST_NAMES])}{more}."


def _shown(spec: ToolSpec) -> str:
    schema = msgspec.json.encode(spec.schema).decode()
    return f"{spec.name}: {' '.join(spec.description.split())}\narguments: {schema}"
