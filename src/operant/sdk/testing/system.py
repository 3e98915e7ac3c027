"""A running kernel over fakes, with the smallest policies that make it answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from operant.kernel.hooks import Registration
from operant.kernel.kernel import Kernel
from operant.kernel.points import ASSEMBLE, COMPUTE_MODEL, AssembleInput, AssembleOutput, ModelInput, ModelOutput
from operant.kernel.records import OWNER, Event, MessageQueued, Text, TurnEnded, text_of
from operant.kernel.syscalls import Dispatched, SessionDispatch
from operant.sdk.door import open_door
from operant.sdk.testing.fakes import CountingIds, ManualClock, MemoryAgents, ScriptedModel
from operant.sdk.testing.store import MemoryStore


@dataclass
class Bench:
    """A kernel and its fakes."""

    model: ScriptedModel = field(default_factory=lambda: ScriptedModel("Hello."))
    clock: ManualClock = field(default_factory=ManualClock)
    ids: CountingIds = field(default_factory=CountingIds)
    agents: MemoryAgents = field(default_factory=MemoryAgents)
    store: MemoryStore | None = None

    def kernel(self, *, policies: bool = True) -> Kernel:
        """Make a kernel over what is stored; twice in a row is a restart."""
        self.store = self.store or MemoryStore(self.clock)
        kernel = Kernel(self.store, self.clock, self.ids, self.agents)
        open_door(kernel)
        kernel.compute.register(self.model)
        if policies:
            kernel.hooks.register(ASSEMBLE, Registration(point=ASSEMBLE.name, author="plain", handler=_assemble))
            kernel.hooks.register(COMPUTE_MODEL, Registration(point="compute.model", author="plain", handler=_choose))
        return kernel

    @asynccontextmanager
    async def running(self, *, policies: bool = True) -> AsyncGenerator[Kernel]:
        """Run a kernel."""
        kernel = self.kernel(policies=policies)
        async with kernel.running():
            yield kernel


async def say(kernel: Kernel, text: str, session: str = "s", external_id: str = "") -> Dispatched:
    """Dispatch a message as the owner."""
    return await kernel.call(OWNER, SessionDispatch(session=session, parts=(Text(text=text),), external_id=external_id))


async def ended(kernel: Kernel, session: str = "s", turns: int = 1) -> list[Event]:
    """Wait until a session has so many ended turns, and return its events."""
    async with asyncio.timeout(10):
        while True:
            events = list(await kernel.store.events(session))
            if sum(isinstance(event.body, TurnEnded) for event in events) >= turns:
                return events
            await asyncio.sleep(0.001)


def told(events: list[Event]) -> list[str]:
    """Return what the person was told, in order."""
    return [text_of(event.body.parts) for event in events if isinstance(event.body, MessageQueued)]


async def _assemble(input: AssembleInput) -> AssembleOutput:
    return AssembleOutput(system="You are a test.", tools=input.tools)


async def _choose(input: ModelInput) -> ModelOutput:
    return ModelOutput(chain=(input.session.model,) if input.session.model else input.agent.models)
