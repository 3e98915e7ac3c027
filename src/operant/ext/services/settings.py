"""The section `services` of the configuration."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.sdk import LIVE, Record


class ServiceSettings(Record):
    """Which services run without being asked about."""

    trusted: Annotated[
        tuple[str, ...],
        Meta(description="Skills whose service runs in every version, unasked: those that you write yourself."),
    ] = ()
    configuration: Annotated[
        dict[str, dict[str, str]],
        Meta(
            description="By skill: names and texts that its service is given when it registers, and after an edit.",
            extra={LIVE: True},
        ),
    ] = {}
