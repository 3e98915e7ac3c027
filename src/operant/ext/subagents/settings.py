"""The section `subagents` of the configuration."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.sdk import Record


class SubagentSettings(Record):
    """How many sub-agents there may be; every one of them costs what an agent costs."""

    depth: Annotated[int, Meta(ge=0, le=8, description="Generations: 1 lets an agent call some, 2 those too.")] = 2
    per_turn: Annotated[int, Meta(ge=1, description="Sub-agents of one turn, with all that they call.")] = 16
    at_once: Annotated[int, Meta(ge=1, description="Sub-agents of one call that work at the same time.")] = 4
    pool: Annotated[
        int, Meta(ge=1, description="Sub-agents of one generation that work at the same time in the whole system.")
    ] = 16
