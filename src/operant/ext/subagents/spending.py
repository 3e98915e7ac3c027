"""One limit of tokens for a turn and all that works for it."""

from __future__ import annotations

from operant.ext.subagents.roster import Roster
from operant.sdk import (
    ComputedInput,
    ComputedOutput,
    ComputeInput,
    Event,
    Host,
    ModelFailed,
    ModelReplied,
    Reject,
    Usage,
)

_PAGE = 1_000


class Spending:
    """Count the tokens of sessions that work for one turn."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self._host = host
        self._roster = roster
        self._used: dict[tuple[str, str], int] = {}

    async def within(self, input: ComputeInput) -> Reject | None:
        """Refuse a model call when the turn that it is for has used up its tokens, whoever used them."""
        limit = input.agent.limits.turn_tokens
        mine = await self._roster.get(input.session.key)
        root, turn = (mine.root, mine.root_turn) if mine else (input.session.key, input.progress.turn)
        if limit is None or not turn:
            return None
        self._used[input.session.key, input.progress.turn] = _tokens(input.progress.usage)
        members = await self._roster.of_turn(root, turn)
        if not members:
            return None
        used = await self._of_turn(root, turn)
        for child in members:
            used += await self._of_session(child.session)
        if used + input.estimate <= limit:
            return None
        said = f"{used:,} of {limit:,} tokens"
        return Reject(
            reason=f"I stopped at the limit of tokens of this turn and its sub-agents ({said} used).", code="budget"
        )

    async def count(self, input: ComputedInput, output: ComputedOutput) -> None:
        """Count a reply, before it is on record."""
        key = (input.session.key, input.progress.turn)
        if key in self._used:
            self._used[key] = _tokens(input.progress.usage) + _tokens(output.reply.usage)

    def forget(self, session: str) -> None:
        """Let a turn that has ended go."""
        for key in [one for one in self._used if one[0] == session]:
            del self._used[key]

    async def _of_session(self, session: str) -> int:
        """Return all that a sub-agent used: its session is for this work alone."""
        counted = [used for (key, _), used in self._used.items() if key == session]
        if counted:
            return sum(counted)
        head = await self._host.kept.head(session)
        return _tokens(head.info.usage) if head else 0

    async def _of_turn(self, session: str, turn: str) -> int:
        """Return what a turn of a person used itself; read from the log where it began in an earlier process."""
        if (session, turn) not in self._used:
            self._used[session, turn] = 0
            after = 0
            while events := await self._host.kept.events(session, after, _PAGE):
                after = events[-1].seq
                self._used[session, turn] += sum(_used(event) for event in events if event.turn == turn)
        return self._used[session, turn]


def _used(event: Event) -> int:
    return _tokens(event.body.usage) if isinstance(event.body, ModelReplied | ModelFailed) else 0


def _tokens(usage: Usage) -> int:
    return usage.input + usage.output
