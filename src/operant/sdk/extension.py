"""What an extension is and what it gets: the whole door, for ours and yours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from operant.kernel.hooks import Registration, Ruling
from operant.kernel.points import Point
from operant.kernel.ports import Agents, Blobs, CallContext, Channel, Clock, Ids, Model, Price, Store, Tool, Toolbox
from operant.kernel.records import Agent, Principal, Record
from operant.kernel.syscalls import Syscall

if TYPE_CHECKING:  # most commands of the command line never dial out
    from operant.kit.http import Http
    from operant.sdk.client import Client
    from operant.sdk.mount import Mount

In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)
R = TypeVar("R")


LIVE = "live"
"""In the `extra` of a setting's `Meta`: the extension takes up edits of it while it runs."""


class Extension(Record):
    """One feature: a name, the function that sets it up, and its section of the configuration.

    `setup` is `module:function`, imported when the extension starts; the function is an async context manager
    `(host, settings)` in which the feature lives. `settings` is `module:Struct`, the type of section `section`
    (default: the name), or empty when there is nothing to set. Without an `essential` one nothing starts: a guard that
    is broken must not be a guard that is off. `skill` stands for it among the skills: removing that switches it off.
    """

    name: str
    setup: str
    settings: str = ""
    section: str = ""
    essential: bool = False
    skill: str = ""


class Command(Record):
    """A program that a tool wants to run for an agent, before the sandbox has gone around it.

    `cwd` is a directory that the caller has made sure of; `env` is what the program may have at most; `terminal` says
    that it gets a terminal of its own. An `inert` one can only look: nothing is writable, there is no network.
    A `private` one is nobody's tool: of what can be written it has `writable` alone, and no hook changes `env`.
    `readable` are paths that it may read beside what any program may; `socket` is one that it may connect to.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    tool: str
    terminal: bool = False
    inert: bool = False
    private: bool = False
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    socket: str = ""


class Launch(Record):
    """Exactly what is executed; `contained`: its whole tree dies with the process that is started.

    `fds` are open handles that it must inherit under their numbers: the sandbox is told through them.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    contained: bool = False
    fds: tuple[int, ...] = ()


class Typed(Record):
    """A command as somebody typed it in a shell; `input` is its standard input, when it was told to read that."""

    name: str
    arguments: tuple[str, ...] = ()
    input: str = ""


class Printed(Record):
    """What a command prints, and the code that it ends with."""

    output: str = ""
    error: str = ""
    code: int = 0


class Commands(Protocol):
    """Offer commands for the shells of agents."""

    def commands(self, agent: Agent) -> Mapping[str, str]:
        """Return an agent's commands by name, and in a few words what each does (empty: the model is not told)."""
        ...

    async def run(self, call: CallContext, words: Typed) -> Printed:
        """Run a command that was typed in the shell of a call; `call` cannot be made up by who typed it."""
        ...


class Host(Protocol):
    """What a running system offers to its extensions."""

    clock: Clock
    ids: Ids
    agents: Agents
    blobs: Blobs
    home: str
    """Directory of the home."""
    state: str
    """Directory for private files (0700)."""
    serving: bool
    """Whether this system stays and serves others; false for one that a command runs for itself."""
    http: Http
    """The one client of the system, over the one egress (`http.egress`): everything that dials out goes through it."""

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

    def shell_commands(self, box: Commands, *, over: bool = False) -> None:
        """Offer commands for the shells of agents; programs of the same name win, unless these go `over` them."""
        ...

    def commands_of(self, agent: Agent) -> Mapping[str, str]:
        """Return what an agent may type in its shell beside the programs of the system, and what each does."""
        ...

    def toolbox(self, box: Toolbox) -> None:
        """Register tools that come and go, or that only some agents have."""
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

    def mount(self, mount: Mount) -> None:
        """Answer a path of the gateway, behind its entrance. Raises `Invalid`, or `Conflict` for one that is taken.

        Only a system that serves listens; in any other nobody asks.
        """
        ...

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Return what all extensions have mounted; whoever listens serves it."""
        ...

    def variable(self, name: str) -> str | None:
        """Return a variable of the environment or of `defaults.env_file`, such as a key that somebody has set."""
        ...

    def reread(self) -> Any:
        """Return the settings of this extension as `operant.yaml` and the environment have them by now.

        Blocks. Raises `Invalid` when any of it is wrong. What the extension was set up with stays until it acts on it.
        """
        ...

    def enroll(self, author: str, handlers: Sequence[tuple[Point[Any, Any], Registration]]) -> None:
        """Let these be all the handlers of an author, in place of those before: at once, no call sees neither."""
        ...

    def before_work(self, begin: Callable[[], Awaitable[None]]) -> None:
        """Do this once syscalls can be made, before anything that is unfinished is taken up; not where nothing is."""
        ...

    def decode(self, name: str, params: Any) -> Syscall[Any]:
        """Make a syscall of what came over a wire. Raises `NotFound` or `Invalid`."""
        ...

    async def call(self, call: Syscall[R]) -> R:
        """Make a syscall as this extension; `Unavailable` while the system is not ready."""
        ...

    def client(self, principal: Principal) -> Client:
        """Return a way to this system for somebody with only their capabilities; see `Client`."""
        ...

    def paused(self, session: str) -> AbstractContextManager[None]:
        """Let the time limit of the turn at work in a session stand still while a person is asked on its behalf."""
        ...

    async def judge(self, point: Point[In, Out], input: In, output: Out) -> Ruling[Out]:
        """Pass a gate or a transform: what the handlers left of the output, and their verdict."""
        ...

    def emit(self, point: Point[In, Any], input: In) -> None:
        """Tell observers of an event; never waits."""
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

    def confined(self, call: CallContext, command: Command) -> AbstractAsyncContextManager[Launch]:
        """Put the agent's sandbox around a command, after the `tool.env` hook; what it needs lasts with the context.

        Raises `Unavailable` where the agent must have a sandbox and the machine has none: never runs without.
        """
        ...
