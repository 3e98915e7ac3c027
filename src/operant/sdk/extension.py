"""What an extension is and what it gets: the whole door, for ours and yours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal, Protocol, TypeVar

from operant.kernel.points import Point
from operant.kernel.ports import Agents, Blobs, Channel, Clock, Ids, Model, Price, Store, Tool
from operant.kernel.records import Record
from operant.kernel.syscalls import Syscall

In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)
R = TypeVar("R")


class Extension(Record):
    """One feature: a name, the function that sets it up, and its section of the configuration.

    `setup` is `module:function`, imported when the extension starts; the function is an async context manager
    `(host, settings)` in which the feature lives. `settings` is `module:Struct`, the type of section `section`
    (default: the name), or empty when there is nothing to set. Without an `essential` one nothing starts: a guard that
    is broken must not be a guard that is off.
    """

    name: str
    setup: str
    settings: str = ""
    section: str = ""
    essential: bool = False


class Host(Protocol):
    """What a running system offers to its extensions."""

    clock: Clock
    ids: Ids
    agents: Agents
    blobs: Blobs
    state: str
    """Directory for private files (0700)."""

    @property
    def kept(self) -> Store:
        """Return the store, to read from; write nothing but values under your own name. Raises `Missing`."""
        ...

    def store(self, store: Store) -> None:
        """Be the store; exactly one extension is."""
        ...

    def hook(
        self,
        point: Point[In, Out],
        handler: Callable[..., Coroutine[Any, Any, object]],
        *,
        phase: Literal["mutate", "validate"] = "mutate",
        priority: int = 0,
        fail: Literal["closed", "open", ""] = "",
        timeout_s: float = 5.0,
    ) -> None:
        """Register a handler; its parameters are any of `input` and `output`, by name."""
        ...

    def tool(self, tool: Tool) -> None:
        """Register a tool; a name that is taken raises `Conflict`."""
        ...

    def model(self, model: Model) -> None:
        """Register a provider of models under its `name`."""
        ...

    def channel(self, channel: Channel) -> None:
        """Register a channel under its `name`; it is opened once everything is set up."""
        ...

    def syscall(self, call: type[Syscall[R]], handler: Callable[[Any, Any], Awaitable[R]]) -> None:
        """Register a syscall; the handler gets `(principal, call)`."""
        ...

    def variable(self, name: str) -> str | None:
        """Return a variable of the environment or of `defaults.env_file`, such as a key that somebody has set."""
        ...

    async def call(self, call: Syscall[R]) -> R:
        """Make a syscall as this extension; `Unavailable` while the system is not ready."""
        ...

    async def provide(self, point: Point[In, Out], input: In) -> Out | None:
        """Ask a provider hook; None when nobody answers."""
        ...

    def price(self, model: str) -> Price | None:
        """Return the price of `provider/model`, or None where it is not known."""
        ...

    async def environment(self, session: str, agent: str, tool: str, base: dict[str, str]) -> dict[str, str]:
        """Return the environment for a process of a tool, after the `tool.env` hook."""
        ...
