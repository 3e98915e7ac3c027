"""The section `skills` of the configuration."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.sdk import Record


class SkillSettings(Record):
    """Where skills are looked for, and how many an agent is told about."""

    folders: Annotated[
        tuple[str, ...], Meta(description="More folders of skills, such as `/srv/skills`; every agent has them.")
    ] = ()
    projects: Annotated[
        tuple[str, ...],
        Meta(description="Projects that you trust: their `.agents/skills` and `.claude/skills` count too."),
    ] = ()
    listed: Annotated[
        int, Meta(ge=0, le=500, description="Skills that a model is told by name; of more it is told how to search.")
    ] = 50

    def __post_init__(self) -> None:
        """Refuse paths that nobody can know the meaning of."""
        for path in (*self.folders, *self.projects):
            if not path.startswith(("/", "~/")):
                raise ValueError(f"{path!r} is not a whole path, such as /srv/skills or ~/work/project")
