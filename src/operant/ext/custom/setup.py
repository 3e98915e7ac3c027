"""Offer the custom tools of every agent, and have a person look at new ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from operant.ext.custom.bench import DESCRIBE_S
from operant.ext.custom.shelf import Shelf
from operant.sdk import (
    DISPATCH_BEFORE,
    TOOL_AFTER,
    TOOL_BEFORE,
    Agent,
    Ask,
    DispatchInput,
    Host,
    KvGet,
    KvSet,
    ToolAfterInput,
    ToolInput,
)

_NAMESPACE = "custom"


@asynccontextmanager
async def setup(host: Host, settings: None) -> AsyncGenerator[None]:
    """Offer the tools while the context is open."""
    review = Review(host)
    host.toolbox(review.shelf)
    host.hook(DISPATCH_BEFORE, review.arrived, fail="open", timeout_s=DESCRIBE_S + 5)
    host.hook(TOOL_BEFORE, review.asked, phase="validate")
    host.hook(TOOL_AFTER, review.changed, priority=-950, timeout_s=DESCRIBE_S + 5)
    yield


class Review:
    """Look at the files when they may have changed; ask once about every state of a file that is used."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.shelf = Shelf(host)

    async def arrived(self, input: DispatchInput) -> None:
        """Look at the files before a turn."""
        await self.shelf.look(input.agent)

    async def changed(self, input: ToolAfterInput) -> None:
        """Look again after a tool: it may have written one; a tool that ran was allowed to."""
        digest = self.shelf.digest(input.agent, input.name)
        if digest and not await self._known(input.agent, digest):
            await self._host.call(KvSet(namespace=_NAMESPACE, key=_key(input.agent, digest), value="1"))
        await self.shelf.look(input.agent)

    async def asked(self, input: ToolInput) -> Ask | None:
        """Ask before the first use of what a file says now, whatever the approvals say."""
        digest = self.shelf.digest(input.agent, input.name)
        if not digest or await self._known(input.agent, digest):
            return None
        return Ask(
            question=f"{input.name} is a tool that is new or has changed in the workspace of {input.agent.name} "
            f"(tools/, {digest[:12]}). May it run?"
        )

    async def _known(self, agent: Agent, digest: str) -> bool:
        return await self._host.call(KvGet(namespace=_NAMESPACE, key=_key(agent, digest))) is not None


def _key(agent: Agent, digest: str) -> str:
    return f"{agent.name}:{digest}"
