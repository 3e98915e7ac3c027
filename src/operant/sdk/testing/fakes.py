"""Small fakes: a clock moved by hand, ids that count, a scripted model, a channel in memory, agents in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from operant.kernel.errors import ModelError, NotFound, OperantError
from operant.kernel.ports import Facts, Price, Receipt
from operant.kernel.records import (
    Address,
    Agent,
    Chosen,
    ModelRequest,
    OutboxItem,
    Reply,
    StreamPart,
    Text,
    TextDelta,
    ToolCall,
    Usage,
    text_of,
)


class ManualClock:
    """A clock that moves when it is told to, or when somebody sleeps on it."""

    def __init__(self, now: int = 1_790_000_000_000_000) -> None:
        self._now = now

    def now(self) -> int:
        """Return microseconds since 1970."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds."""
        return self._now / 1_000_000

    def advance(self, seconds: float) -> None:
        """Move on."""
        self._now += int(seconds * 1_000_000)

    async def sleep(self, seconds: float) -> None:
        """Let others run, and be `seconds` later at once."""
        self.advance(seconds)
        await asyncio.sleep(0)


class CountingIds:
    """Ids in order: `id-1`, `id-2`, and so on."""

    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        """Return the next id."""
        self._last += 1
        return f"id-{self._last:06}"

    def jitter(self) -> float:
        """Return no randomness at all."""
        return 0.5


Step = str | Sequence[ToolCall] | ModelError | Reply | Callable[[ModelRequest], "Step"]


class ScriptedModel:
    """A model that says what it is told to, a step a call; the last step is repeated."""

    name = "scripted"

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.requests: list[ModelRequest] = []
        self.hold: asyncio.Event | None = None

    def script(self, *steps: Step) -> None:
        """Say these from now on."""
        self._steps = list(steps)

    def facts(self, model: str) -> Facts:
        """Have a small window, so that tests need not write books; cost one dollar a million tokens in, two out."""
        return Facts(window=100_000, price=Price(input=1.0, output=2.0))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Yield the next step."""
        self.requests.append(request)
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        while callable(step):
            step = step(request)
        if isinstance(step, ModelError):
            raise step
        if self.hold is not None:
            await self.hold.wait()
        if isinstance(step, Reply):
            yield step
            return
        if isinstance(step, str):
            yield TextDelta(text=step)
            parts = (Text(text=step),)
        else:
            parts = tuple(step)
        size = sum(len(text_of(message.parts)) for message in request.messages) // 4
        yield Reply(parts=parts, model=request.model, provider=self.name, usage=Usage(input=size, output=5, calls=1))


class MemoryChannel:
    """A platform in memory. `failures` are raised by the next sends, one each."""

    def __init__(self, name: str = "memory", *, exact: bool = False, pull: bool = False) -> None:
        self.name = name
        self.exact = exact
        self.pull = pull
        self.sent: list[tuple[OutboxItem, bool]] = []
        self.failures: list[OperantError] = []
        self.notices: list[str] = []
        self.arrived = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Listen to nobody."""
        yield

    async def send(self, item: OutboxItem, *, repeat: bool) -> Receipt:
        """Take a message."""
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append((item, repeat))
        self.arrived.set()
        return Receipt(platform_id=f"m{len(self.sent)}")

    async def find(self, item: OutboxItem) -> Receipt | None:
        """Look among the messages taken."""
        known = [at for at, (one, _) in enumerate(self.sent, 1) if one.id == item.id]
        return Receipt(platform_id=f"m{known[0]}") if known else None

    async def notice(self, address: Address, text: str) -> None:
        """Keep a notice."""
        self.notices.append(text)


class MemoryAgents:
    """Agents that are not files."""

    def __init__(self, *agents: Agent) -> None:
        self._agents = {agent.name: agent for agent in agents or (Agent(name="operant", models=("scripted/one",)),)}

    def put(self, agent: Agent) -> None:
        """Add an agent or change it."""
        self._agents[agent.name] = agent

    def get(self, name: str) -> Agent:
        """Return an agent."""
        found = self._agents.get(name or next(iter(self._agents)))
        if found is None:
            raise NotFound(f"There is no agent {name!r}.")
        return found

    def list(self) -> Sequence[Agent]:
        """Return all agents."""
        return tuple(self._agents.values())

    def which(self, address: Address, user: str) -> Chosen:
        """Have the first one answer everywhere."""
        return Chosen(agent=next(iter(self._agents)))
