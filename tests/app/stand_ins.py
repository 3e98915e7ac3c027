"""Extensions for tests of the composition root: a store in memory, a scripted model, and some that break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec

from operant.app.build import Options
from operant.app.extensions import Found
from operant.kit.clock import SystemClock
from operant.kit.secret import Secret
from operant.sdk import (
    ASSEMBLE,
    COMPUTE_MODEL,
    AssembleInput,
    AssembleOutput,
    Extension,
    Host,
    ModelInput,
    ModelOutput,
    Record,
)
from operant.sdk.testing.fakes import ScriptedModel
from operant.sdk.testing.store import MemoryStore

HERE = "tests.app.stand_ins"


class Door(Record):
    """One entry of a section whose keys are names."""

    url: str
    key: Secret | None = None


Doors = dict[str, Door]


class StoreSettings(Record):
    """Settings with sentences."""

    durability: Annotated[str, msgspec.Meta(description="What an append survives.")] = "power"


STORE = Extension(name="store", setup=f"{HERE}:store", settings=f"{HERE}:StoreSettings", essential=True)
POLICY = Extension(name="policy", setup=f"{HERE}:policy")
DOORS = Extension(name="doors", setup=f"{HERE}:doors", settings=f"{HERE}:Doors")


@asynccontextmanager
async def store(host: Host, settings: StoreSettings) -> AsyncGenerator[None]:
    """Be a store in memory."""
    host.store(MemoryStore(SystemClock()))
    yield


@asynccontextmanager
async def policy(host: Host, settings: None) -> AsyncGenerator[None]:
    """Be what a kernel needs to answer."""

    async def assemble(input: AssembleInput) -> AssembleOutput:
        return AssembleOutput(system=input.agent.prompt, tools=input.tools)

    async def choose(input: ModelInput) -> ModelOutput:
        return ModelOutput(chain=("scripted/one",))

    host.hook(ASSEMBLE, assemble)
    host.hook(COMPUTE_MODEL, choose)
    host.model(ScriptedModel("Hello."))
    yield


@asynccontextmanager
async def doors(host: Host, settings: Doors) -> AsyncGenerator[None]:
    """Have settings and nothing else."""
    yield


@asynccontextmanager
async def broken(host: Host, settings: None) -> AsyncGenerator[None]:
    """Break at once."""
    raise ZeroDivisionError("by design")
    yield


@asynccontextmanager
async def collapsing(host: Host, settings: None) -> AsyncGenerator[None]:
    """Break a moment after the start, in a task of its own."""

    async def work() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError("later")

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        yield


@asynccontextmanager
async def clashing(host: Host, settings: None) -> AsyncGenerator[None]:
    """Register a handler that the kernel cannot call."""

    async def handler(whatever: object) -> None:
        raise AssertionError("nobody calls it")

    host.hook(ASSEMBLE, handler)
    yield


def chosen(*extensions: Extension, **changes: Any) -> Options:
    """Make options that run these extensions (default: a store and policies) in an empty environment."""
    found: Sequence[Extension] = extensions or (STORE, POLICY)
    return Options(**{"env": {}, "overrides": {}, "find": lambda: Found(extensions=tuple(found)), **changes})
