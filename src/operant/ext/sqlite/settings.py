"""What can be set about the store."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from operant.sdk import Record


class StoreSettings(Record, forbid_unknown_fields=True):
    """How durable a commit is."""

    durability: Annotated[
        Literal["power", "process"],
        Meta(description="`power` survives a power cut, `process` survives a killed process and is faster."),
    ] = "power"
