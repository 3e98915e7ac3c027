"""The clocks of those who wait for sub-agents: they stand still while a person is asked anywhere below."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from operant.ext.subagents.roster import Child
from operant.sdk import ApprovalAnswered, ApprovalAsked, Event, Host


class Wait:
    """Somebody who waits for one sub-agent; `clock` is closed while the time of the one who waits stands still."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.questions: set[str] = set()
        self.clock: ExitStack | None = None


class Patience:
    """Know who waits for whom, and which questions are open."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._waits: dict[str, Wait] = {}

    @contextmanager
    def waiting(self, child: Child) -> Generator[None]:
        """Note that the turn that called a sub-agent waits for it while the context is open."""
        wait = self._waits[child.session] = Wait(child)
        try:
            self._look()
            yield
        finally:
            del self._waits[child.session]
            if wait.clock is not None:
                wait.clock.close()
            self._look()

    def take(self, event: Event) -> None:
        """Take an event of a sub-agent into account."""
        wait, body = self._waits.get(event.session), event.body
        if wait is None or not isinstance(body, ApprovalAsked | ApprovalAnswered):
            return
        if isinstance(body, ApprovalAsked):
            wait.questions.add(body.approval_id)
        else:
            wait.questions.discard(body.approval_id)
        self._look()

    def _look(self) -> None:
        """Let stand still whose sub-agent asks, and let go on whose does not any more."""
        for wait in self._waits.values():
            asks = self._asks(wait)
            if asks and wait.clock is None:
                wait.clock = ExitStack()
                wait.clock.enter_context(self._host.paused(wait.child.parent))
            elif not asks and wait.clock is not None:
                wait.clock.close()
                wait.clock = None

    def _asks(self, wait: Wait) -> bool:
        """Tell whether a question is open in a sub-agent or below it."""
        below = (one for one in self._waits.values() if one.child.parent == wait.child.session)
        return bool(wait.questions) or any(map(self._asks, below))
