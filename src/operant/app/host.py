"""What an extension holds of the system: it registers here, and the kernel takes it over once there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, Literal, TypeVar

import msgspec

from operant.app.confine import Confinement
from operant.app.mounts import Mounts
from operant.kernel.errors import Conflict, Invalid, Missing, OperantError, Unavailable
from operant.kernel.hooks import Registration, Ruling
from operant.kernel.kernel import Kernel
from operant.kernel.points import TOOL_ENV, EnvInput, EnvOutput, Point, Reject
from operant.kernel.ports import Agents, CallContext, Channel, Clock, Ids, Model, Price, Store, Tool, Toolbox
from operant.kernel.records import Agent, BlobRef, Principal, Record
from operant.kernel.syscalls import Syscall
from operant.kit.http import Http
from operant.sdk.extension import Command, Commands, Launch
from operant.sdk.local import LocalClient
from operant.sdk.mount import Mount
from operant.sdk.whole import whole

_PHASES = ("mutate", "validate")
_FAILS = ("", "closed", "open")

In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)
R = TypeVar("R")


class Assembly:
    """A system that is being put together: the store, then the kernel over it."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        agents: Agents,
        find: Callable[[str], str | None],
        http: Http,
        sandbox: Confinement,
    ) -> None:
        self.home = sandbox.home
        self.serving = False
        self.clock = clock
        self.ids = ids
        self.agents = agents
        self.find = find
        self.http = http
        self.confine = sandbox.confine
        self.commands = sandbox.commands
        self.store: Store | None = None
        self.store_by = ""
        self.mounts = Mounts()
        self.kernel: Kernel | None = None
        self.reread: Callable[[str], Any] = _never

    def offer_store(self, store: Store, author: str) -> None:
        """Take the store. Raises `Conflict` when there is one."""
        if self.store is not None:
            raise Conflict(f"{author} and {self.store_by} both bring a store.", "Disable one in `extensions.disabled`.")
        self.store, self.store_by = store, author

    def need_store(self) -> Store:
        """Return the store. Raises `Missing`."""
        if self.store is None:
            raise Missing("No extension brings a store.", "Enable the extension `store`.")
        return self.store

    def need_kernel(self) -> Kernel:
        """Return the kernel. Raises `Unavailable` while extensions are being set up."""
        if self.kernel is None:
            raise Unavailable("The system is not ready yet.", "Wait for the hook daemon.started.")
        return self.kernel


class LaterBlobs:
    """Blobs of a store that another extension may bring later."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    async def put_blob(self, data: bytes, media_type: str = "application/octet-stream", name: str = "") -> BlobRef:
        """Keep bytes under the digest of their content."""
        return await self._assembly.need_store().put_blob(data, media_type, name)

    async def get_blob(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        """Return bytes of a blob."""
        return await self._assembly.need_store().get_blob(digest, offset, limit)


class ExtensionHost:
    """The `Host` of one extension."""

    def __init__(self, author: str, state: str, assembly: Assembly) -> None:
        self.clock = assembly.clock
        self.ids = assembly.ids
        self.agents = assembly.agents
        self.blobs = LaterBlobs(assembly)
        self.http = assembly.http
        self.home = str(assembly.home.path)
        self.serving = assembly.serving
        self.state = state
        self.author = author
        self._assembly = assembly
        self._waiting: list[Callable[[Kernel], None]] = []
        self._beginnings: list[Callable[[], Awaitable[None]]] = []
        self._principal = Principal(kind="extension", id=author, capabilities=frozenset({"admin"}))

    @property
    def kept(self) -> Store:
        """Return the store, to read from. Raises `Missing`."""
        return self._assembly.need_store()

    def store(self, store: Store) -> None:
        """Be the store."""
        self._assembly.offer_store(store, self.author)

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
        """Register a handler; gates fail closed unless told otherwise, everything else fails open. Raises `Invalid`."""
        for key, told, known in (("phase", phase, _PHASES), ("fail", fail, _FAILS)):
            if told not in known:
                words = " or ".join(repr(one) for one in known if one)
                raise Invalid(f"The handler of {self.author} at {point.name} has {key}={told!r}. It takes {words}.")
        registration = Registration(
            point=point.name,
            author=self.author,
            handler=handler,
            phase=phase,
            priority=priority,
            fail=fail or ("closed" if point.kind == "gate" else "open"),
            timeout_s=timeout_s,
        )
        self.register(lambda kernel: kernel.hooks.register(point, registration))

    def enroll(self, author: str, handlers: Sequence[tuple[Point[Any, Any], Registration]]) -> None:
        """Let these be all the handlers of an author; nothing else runs in between."""
        whose = f"{self.author}/{author}"  # not the name of an extension, whatever the author is called

        def swap(kernel: Kernel) -> None:
            kernel.hooks.unregister(whose)
            for point, registration in handlers:
                kernel.hooks.register(point, msgspec.structs.replace(registration, author=whose))

        self.register(swap)

    def before_work(self, begin: Callable[[], Awaitable[None]]) -> None:
        """Do this before anything that is unfinished is taken up."""
        self._beginnings.append(begin)

    async def begin(self) -> None:
        """Do what was to be done before work is taken up."""
        for begin in self._beginnings:
            await begin()

    def decode(self, name: str, params: Any) -> Syscall[Any]:
        """Make a syscall of what came over a wire."""
        return self._assembly.need_kernel().syscalls.decode(name, params)

    def tool(self, tool: Tool) -> None:
        """Register a tool."""
        self.register(lambda kernel: kernel.gate.register(tool))

    def shell_commands(self, box: Commands, *, over: bool = False) -> None:
        """Offer commands for the shells of agents."""
        self._assembly.commands.add(box, over=over)

    def commands_of(self, agent: Agent) -> Mapping[str, str]:
        """Return what an agent may type in its shell."""
        return self._assembly.commands.offered(agent)

    def toolbox(self, box: Toolbox) -> None:
        """Register tools that come and go."""
        self.register(lambda kernel: kernel.gate.add(box))

    def model(self, model: Model) -> None:
        """Register a provider of models."""
        self.register(lambda kernel: kernel.compute.register(model))

    def channel(self, channel: Channel) -> None:
        """Register a channel."""
        self.register(lambda kernel: kernel.outbox.register(channel))

    def syscall(self, call: type[Syscall[R]], handler: Callable[[Any, Any], Awaitable[R]]) -> None:
        """Register a syscall."""
        self.register(lambda kernel: kernel.syscalls.register(call, handler))

    def mount(self, mount: Mount) -> None:
        """Answer a path of the gateway."""
        self._assembly.mounts.add(mount, self.author)

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Return what all extensions have mounted."""
        return self._assembly.mounts.all()

    def variable(self, name: str) -> str | None:
        """Return a variable of the environment or of the env file."""
        return self._assembly.find(name)

    def reread(self) -> Any:
        """Return the settings of this extension as the configuration has them by now."""
        return self._assembly.reread(self.author)

    async def call(self, call: Syscall[R]) -> R:
        """Make a syscall as this extension."""
        return await self._assembly.need_kernel().call(self._principal, whole(call))

    def client(self, principal: Principal) -> LocalClient:
        """Return a way to this system for somebody with only their capabilities."""
        return LocalClient(self._assembly.need_kernel, principal)

    def paused(self, session: str) -> AbstractContextManager[None]:
        """Let the time limit of the turn at work in a session stand still."""
        turn = self._assembly.need_kernel().sessions.get(session).turn
        return nullcontext() if turn is None else turn.deadline.paused()

    async def judge(self, point: Point[In, Out], input: In, output: Out) -> Ruling[Out]:
        """Pass a gate or a transform."""
        return await self._assembly.need_kernel().hooks.run(point, input, output)

    def emit(self, point: Point[In, Any], input: In) -> None:
        """Tell observers of an event."""
        self._assembly.need_kernel().hooks.emit(point, input)

    async def provide(self, point: Point[In, Out], input: In) -> Out | None:
        """Ask a provider hook."""
        return await self._assembly.need_kernel().hooks.provide(point, input)

    def price(self, model: str) -> Price | None:
        """Return the price of `provider/model`."""
        return self._assembly.need_kernel().compute.price(model)

    async def environment(self, session: str, agent: str, tool: str, base: dict[str, str]) -> dict[str, str]:
        """Return the environment for a process of a tool."""
        kernel = self._assembly.need_kernel()
        about = EnvInput(session=session, agent=self.agents.get(agent), name=tool)
        ruling = await kernel.hooks.run(TOOL_ENV, about, EnvOutput(env=base))
        if isinstance(ruling.verdict, Reject):
            raise Unavailable(f"{tool} may not start a process: {ruling.verdict.reason}")
        return ruling.output.env

    def confined(self, call: CallContext, command: Command) -> AbstractAsyncContextManager[Launch]:
        """Put the agent's sandbox around a command."""
        return self._assembly.confine(call, command, self.environment)

    def hand_over(self, kernel: Kernel) -> str:
        """Register everything with the kernel and return what went wrong, or an empty text."""
        waiting, self._waiting = self._waiting, []
        try:
            for register in waiting:
                register(kernel)
        except OperantError as error:
            kernel.hooks.unregister(self.author)
            self._assembly.mounts.drop(self.author)
            return error.line()
        return ""

    def register(self, register: Callable[[Kernel], None]) -> None:
        """Register with the kernel, as soon as there is one."""
        if self._assembly.kernel is None:
            self._waiting.append(register)
        else:
            register(self._assembly.kernel)


def _never(name: str) -> Any:
    raise Unavailable(f"The settings of {name} cannot be read again here.")
