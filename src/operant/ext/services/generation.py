"""One start of a service: its process, its connection, and what it registered."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack
from contextvars import Context
from pathlib import Path
from typing import Any, Protocol

import msgspec

from operant.ext.services.declared import point_of
from operant.ext.services.ending import WRONG_CONFIGURATION, told
from operant.ext.services.line import Line, TooLong
from operant.ext.services.wire import (
    HEARTBEAT_S,
    PROTOCOL,
    Configured,
    HookAnswer,
    HookCall,
    HookWanted,
    Lent,
    Message,
    Register,
    Registered,
    Shutdown,
)
from operant.kit.background import Background, started
from operant.kit.endpoint import greeting, listen, peer_process, same_user
from operant.kit.family import descendants
from operant.kit.jsonrpc import INVALID_REQUEST, ErrorData, Fault
from operant.kit.proc import CannotStart
from operant.sdk import Command, Invalid, OperantError, Output, Record, Unavailable

REGISTER_S = 20.0
CONFIGURE_S = 20.0
MISSED = 3
"""Heartbeats in a row without an answer after which a service is taken for dead."""
LEAVE_S = 5.0

_log = logging.getLogger("operant.services")


class Unfit(Exception):
    """Say in one sentence why a generation did not come about; `final`: it is of no use to try again."""

    def __init__(self, sentence: str, *, final: bool = False) -> None:
        super().__init__(sentence)
        self.final = final


class Plan(Record):
    """What is to be started."""

    service: str
    number: int
    digest: str
    command: Command
    socket: str
    configuration: dict[str, str] = {}
    granted: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    remote: bool = False


class Clerk(Protocol):
    """Whoever carries out what a service asks for; `spawn` starts a task that its keeper holds."""

    spawn: Callable[[Any, Context], asyncio.Task[None] | None] | None

    def confined(self, command: Command) -> Any:
        """Put the sandbox around the command of a service."""
        ...

    def heard(self, data: bytes) -> None:
        """Take what the process said on its standard streams."""
        ...

    def lent(self, data: bytes) -> AbstractContextManager[str]:
        """Let the service read something in pieces while the context is open, under the name that this yields."""
        ...

    def asked(self, line: Line, message: Message, context: Context | None) -> None:
        """Take a request or a notification of the service."""
        ...

    def close(self) -> None:
        """End what the service asked for and what is not done yet."""
        ...


class Generation:
    """One process of a service; make it, `live` in a task, and wait for `registered`."""

    def __init__(self, plan: Plan, clerk: Clerk) -> None:
        self.plan = plan
        self.asks: dict[tuple[str, str], HookWanted] = {}
        self.register: Register | None = None
        self.gone = asyncio.Event()
        self.ended = asyncio.Event()
        self.missed = 0
        self.pinned: set[str] = set()
        self.configuration: Mapping[str, str] = plan.configuration
        self.code: int | None = None
        self._clerk = clerk
        self._token = secrets.token_hex(32)
        self._line = Line(self)
        self._program: Background | None = None
        self._registered: asyncio.Future[Register] = asyncio.get_running_loop().create_future()
        self._leaving = asyncio.Event()
        self._connected = False
        self._reason = ""
        self._first: int | str = 0
        self._entered = False

    @property
    def alive(self) -> bool:
        """Tell whether it can be asked."""
        return self.register is not None and not self.gone.is_set()

    @property
    def pid(self) -> int:
        """Return the process that keeps it, 0 when there is none."""
        return self._program.pid if self._program and not self.gone.is_set() else 0

    @property
    def final(self) -> bool:
        """Tell whether it is of no use to start it again."""
        return self.code == WRONG_CONFIGURATION

    @property
    def reason(self) -> str:
        """Say why it is gone."""
        ended = told(self.code, self.plan.command.argv) if self.code is not None else ""
        return ended if self.final else self._reason or ended or "it hung up"

    async def registered(self) -> None:
        """Wait until it has registered. Raises `Unfit`."""
        try:
            async with asyncio.timeout(None if self.plan.remote else REGISTER_S):
                self.register = await self._registered
        except TimeoutError as error:
            raise Unfit(f"it did not register within {REGISTER_S:g} s") from error
        self.asks = {(one.point, one.phase): one for one in self.register.hooks}

    async def live(self) -> None:
        """Run the process until it ends or `leave`; nothing of it outlives this."""
        try:
            async with AsyncExitStack() as stack:
                if self.plan.remote:
                    await self._attend()
                    return
                try:
                    await self._start(stack)
                except (CannotStart, OperantError, OSError, ValueError) as error:
                    self._fail(error.line() if isinstance(error, OperantError) else str(error))
                    return
                await self._until_over()
        finally:
            self._fail(self.reason)
            self.gone.set()
            self.ended.set()
            self._line.close(self.reason)
            self._clerk.close()

    def leave(self, reason: str) -> None:
        """Let it end: it is told, then ended with all that it started."""
        self._reason = self._reason or reason
        self._leaving.set()

    # ------------------------------------------------------------------ what it is asked

    async def hook(self, point: str, input: Record, output: Record | None) -> HookAnswer | None:
        """Ask it at a hook point. Raises `Unavailable` or `Invalid`."""
        try:
            raw = await self._line.ask("hook", HookCall(point=point, input=input, output=output))
        except TooLong:
            data = msgspec.json.encode(input)
            with self._clerk.lent(data) as blob:
                lent = Lent(blob=blob, size=len(data))
                raw = await self._line.ask("hook", HookCall(point=point, input=lent, output=output))
        return _read(raw, HookAnswer | None)

    async def ask(self, method: str, params: Record, kind: Any, output: Output | None = None) -> Any:
        """Ask anything else and return an answer of this type. Raises `Unavailable` or `Invalid`."""
        return _read(await self._line.ask(method, params, output), kind)

    async def configure(self, configuration: Mapping[str, str]) -> None:
        """Give it another configuration. Raises `Unavailable` or `Invalid`."""
        self.configuration = configuration
        async with asyncio.timeout(CONFIGURE_S):
            await self.ask("config", Configured(configuration=dict(configuration)), object)

    def tell(self, method: str, params: Record) -> None:
        """Tell it something."""
        self._line.tell(method, params)

    @property
    def entered(self) -> bool:
        """Tell whether it has a connection, or had one."""
        return self._entered

    def heard(self, data: bytes) -> None:
        """Take what came over a connection that is not a transport of the event loop."""
        self._line.data_received(data)

    def hung_up(self) -> None:
        """Take it that such a connection is gone."""
        self._line.connection_lost(None)

    def enter(self, transport: Any, data: bytes) -> None:
        """Take the connection of the service, and what came on it already."""
        self._entered = True
        transport.set_protocol(self._line)
        self._line.connection_made(transport)
        if data:
            self._line.data_received(data)

    # ------------------------------------------------------------------ what it asks

    def asked(self, message: Message, context: Context | None) -> None:
        """Take its first message; what follows goes to the clerk."""
        if self._registered.done():
            if not self._registered.cancelled() and self._registered.exception() is None:
                self._clerk.asked(self._line, message, context)
            return
        try:
            self._registered.set_result(self._checked(message))
        except (msgspec.MsgspecError, OperantError) as error:
            words = error.line() if isinstance(error, OperantError) else str(error)
            self._line.refuse(message.id, Fault(INVALID_REQUEST, words, ErrorData("invalid")))
            self._fail(f"what it registers is wrong: {words}")
            self._leaving.set()

    def refuse(self, sentence: str) -> None:
        """Answer its registration that it cannot be, and let it end."""
        if self.register is not None:
            self._line.refuse(self._first, Fault(INVALID_REQUEST, sentence, ErrorData("invalid")))
            self.register = None
        self.leave(sentence)

    def welcome(self) -> None:
        """Answer its registration: from now on it is asked."""
        plan = self.plan
        answer = Registered(
            service=plan.service, generation=plan.number, configuration=plan.configuration, granted=plan.granted
        )
        self._line.answer(self._first, answer)

    def lost(self, reason: str) -> None:
        """Take it that the connection is gone, and so is the service."""
        self._reason = self._reason or reason
        self.gone.set()
        self._leaving.set()

    # ------------------------------------------------------------------ inside

    def _checked(self, message: Message) -> Register:
        if message.method != "register" or message.id is None:
            raise Invalid("The first message of a service is the request `register`.")
        wanted = msgspec.json.decode(message.params, type=Register)
        if not self.plan.remote and not secrets.compare_digest(wanted.token.encode(), self._token.encode()):
            raise Invalid("The token is not the one that this service was given.")
        if wanted.protocol != PROTOCOL:
            raise Invalid(f"This Operant speaks {PROTOCOL}, not {wanted.protocol[:40]}.")
        beyond = sorted({one.point for one in wanted.hooks} - set(self.plan.hooks)) if self.plan.hooks else []
        if beyond:
            raise Invalid(f"The skill does not declare the hooks {', '.join(beyond)}.", "Add them to operant.hooks.")
        for point in (*(one.point for one in wanted.hooks), *wanted.events):
            point_of(point)
        self._first = message.id
        return wanted

    async def _start(self, stack: AsyncExitStack) -> None:
        path = Path(self.plan.socket)
        listening = listen(path)
        stack.callback(path.unlink, missing_ok=True)
        hello = greeting(path)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Door(self, hello), sock=listening, start_serving=False)
        stack.callback(server.close)
        command = msgspec.structs.replace(
            self.plan.command,
            env={
                **self.plan.command.env,
                "OPERANT_SERVICE_SOCKET": self.plan.socket,
                "OPERANT_SERVICE_TOKEN": self._token,
            },
        )
        launch = await stack.enter_async_context(self._clerk.confined(command))
        self._program = await started(launch, self._clerk.heard)
        await server.start_serving()  # not before it is known whom to let in
        stack.push_async_callback(self._program.end)

    async def _until_over(self) -> None:
        assert self._program is not None
        program = self._program
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(program.exited.wait())
            leaving = group.create_task(self._leaving.wait())
            beating = group.create_task(self._beat())
            await asyncio.wait((ended, leaving), return_when=asyncio.FIRST_COMPLETED)
            beating.cancel()
            if not program.exited.is_set() and self.alive:
                await self._part()
            if not program.exited.is_set() and self.gone.is_set():
                await _within(LEAVE_S / 10, program.exited.wait())  # its exit code says why
            ended.cancel()
            leaving.cancel()
        self.code = program.code if program.exited.is_set() else None

    async def _attend(self) -> None:
        """Stay with a service that runs elsewhere until it has gone or is to go."""
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._beat())
            await self._leaving.wait()
            beating.cancel()
        self._line.tell("shutdown", Shutdown(reason=self._reason, within_s=0.0))

    async def _part(self) -> None:
        """Ask it to end, and give it a little time."""
        assert self._program is not None
        line = self._line
        line.tell("shutdown", Shutdown(reason=self._reason, within_s=LEAVE_S))
        await _within(LEAVE_S, self._program.exited.wait())

    async def _beat(self) -> None:
        """Ask it again and again whether it is there."""
        loop = asyncio.get_running_loop()
        while self.missed < MISSED:
            began = loop.time()
            try:
                await self._ping()
                self.missed = 0
            except TimeoutError:
                self.missed += 1
            except Unavailable:
                return
            except OperantError:  # an error is an answer
                self.missed = 0
            await asyncio.sleep(max(0.0, HEARTBEAT_S - (loop.time() - began)))
        self._reason = f"it did not answer for {MISSED * HEARTBEAT_S:g} s"
        self._line.close(self._reason)

    async def _ping(self) -> None:
        async with asyncio.timeout(HEARTBEAT_S):
            if self.alive:
                await self._line.ask("ping", Record())

    def _fail(self, sentence: str) -> None:
        self._reason = self._reason or sentence
        if not self._registered.done():
            self._registered.set_exception(Unfit(sentence, final=self.final))
            self._registered.exception()  # perhaps nobody waits for it

    def admits(self, connection: Any) -> bool:
        """Tell whether a connection is the one of our process; there is one, once."""
        if self._connected or self._program is None or not same_user(connection):
            return False
        peer = peer_process(connection)
        if peer and peer != self._program.pid and peer not in descendants(self._program.pid):
            _log.warning("a process that is not the service %s was refused at its socket", self.plan.service)
            return False
        self._connected = True
        return True


class _Door(asyncio.Protocol):
    """Lets the process of a generation in, and nobody else."""

    def __init__(self, generation: Generation, hello: bytes) -> None:
        self._generation = generation
        self._hello = hello
        self._data = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look at who it is."""
        self._transport = transport
        if not self._generation.admits(transport.get_extra_info("socket")):
            self._transport.abort()
        elif not self._hello:
            self._enter(b"")

    def data_received(self, data: bytes) -> None:
        """Take the greeting, where the system cannot tell who it is."""
        self._data += data
        if b"\n" in self._data:
            line, _, rest = self._data.partition(b"\n")
            if line + b"\n" == self._hello:
                self._enter(rest)
            else:
                self._transport.abort()

    def _enter(self, rest: bytes) -> None:
        self._generation.enter(self._transport, rest)


def _read(raw: msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"Its answer cannot be used: {error}.") from error


async def _within(seconds: float, waiting: Any) -> None:
    """Wait for something, but not longer than this."""
    try:
        await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        return
