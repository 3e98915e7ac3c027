"""What a service gets of the system: its sandbox, its log, and the syscalls that it was granted."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import Context
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from operant.ext.services.journal import Journal
from operant.ext.services.line import Line
from operant.ext.services.wire import Cancel, Message, Said
from operant.kit.jsonrpc import METHOD_NOT_FOUND, OURS, ErrorData, Fault
from operant.kit.text import plain
from operant.sdk import (
    Agent,
    CallContext,
    Command,
    Host,
    Launch,
    NotFound,
    OperantError,
    Principal,
    Record,
    Unavailable,
)

AT_ONCE = 256
"""Requests that one service may have open; more are refused."""
PIECE = 512 * 1024
READ = "service.blob"
OWN = "service.own"
"""What every service may do: keep its own state, set its own timers."""

_log = logging.getLogger("operant.services")


class Piece(Record):
    """`service.blob`: the piece of something lent that begins at `offset`; the answer is base64, empty at the end."""

    blob: str
    offset: Annotated[int, Meta(ge=0)] = 0


class ServiceClerk:
    """Carry out what one service asks for, with its capabilities and no more."""

    def __init__(self, host: Host, journal: Journal, agent: Agent, granted: tuple[str, ...]) -> None:
        self._host = host
        self._journal = journal
        self._agent = agent
        self._who = Principal(kind="skill", id=journal.name, capabilities=frozenset((OWN, *granted)))
        self._open: dict[int | str, asyncio.Task[None]] = {}
        self._lending: dict[str, bytes] = {}
        self._lent = 0
        self.spawn: Callable[[Any, Context], asyncio.Task[None] | None] | None = None

    @contextmanager
    def lent(self, data: bytes) -> Generator[str]:
        """Let the service read something in pieces while the context is open."""
        self._lent += 1
        blob = f"b{self._lent}"
        self._lending[blob] = data
        try:
            yield blob
        finally:
            del self._lending[blob]

    def confined(self, command: Command) -> AbstractAsyncContextManager[Launch]:
        """Put the sandbox around the command of the service."""
        call = CallContext(call_id="", session="", turn="", agent=self._agent, key="")
        return self._host.confined(call, command)

    def heard(self, data: bytes) -> None:
        """Keep what the process said on its standard streams."""
        self._journal.write(data)

    def asked(self, line: Line, message: Message, context: Context | None) -> None:
        """Take a request or a notification of the service."""
        if message.method == "log":
            self._say(message)
        elif message.method == "cancel":
            self._cancel(message)
        elif message.id is None or message.id in self._open:
            line.refuse(message.id, Fault(OURS, "A request needs an id of its own.", ErrorData("invalid")))
        elif len(self._open) >= AT_ONCE or self.spawn is None:
            line.refuse(message.id, Fault(OURS, f"{AT_ONCE} requests are open already.", ErrorData("unavailable")))
        else:
            id = message.id
            task = self.spawn(self._carry_out(line, message, id), context or Context())
            if task is not None:  # none when Operant ends: then nobody is answered any more
                self._open[id] = task
                task.add_done_callback(lambda _: self._open.pop(id, None))  # also when it never began

    def close(self) -> None:
        """End what is still being carried out: whoever asked for it is gone."""
        for task in self._open.values():
            task.cancel()

    async def _carry_out(self, line: Line, message: Message, id: int | str) -> None:
        # What breaks in a syscall is told to whoever made it, and breaks no other service.
        (wrong,) = await asyncio.gather(self._done(line, message, id), return_exceptions=True)
        if isinstance(wrong, BaseException):
            line.refuse(id, self._fault(message.method, wrong))

    async def _done(self, line: Line, message: Message, id: int | str) -> None:
        params = msgspec.json.decode(message.params)
        if message.method == READ:
            line.answer(id, self._piece(msgspec.convert(params, Piece)))
            return
        call = self._host.decode(message.method, params)
        line.answer(id, await self._host.client(self._who).call(call))

    def _fault(self, method: str, error: BaseException) -> Fault:
        if isinstance(error, OperantError):
            code = METHOD_NOT_FOUND if isinstance(error, NotFound) else OURS
            return Fault(code, error.sentence, ErrorData(error.code, error.hint))
        if isinstance(error, msgspec.MsgspecError):
            return Fault(OURS, f"The parameters cannot be read: {error}.", ErrorData("invalid"))
        _log.error("%s of the service %s broke", plain(method[:80]), self._journal.name, exc_info=error)
        return Fault(OURS, f"It broke with {type(error).__name__}.", ErrorData("broken"))

    def _piece(self, wanted: Piece) -> str:
        data = self._lending.get(wanted.blob)
        if data is None:
            raise NotFound(f"Nothing is lent under {wanted.blob[:80]!r}.", "It is there while the request is open.")
        return base64.b64encode(data[wanted.offset : wanted.offset + PIECE]).decode()

    def _say(self, message: Message) -> None:
        try:
            said = msgspec.json.decode(message.params, type=Said)
        except msgspec.MsgspecError:
            said = Said(text="it logged something that cannot be read", level="warning")
        self._journal.say(said.level, said.text)

    def _cancel(self, message: Message) -> None:
        try:
            task = self._open.get(msgspec.json.decode(message.params, type=Cancel).id)
        except msgspec.MsgspecError:
            return  # what it meant is open still; nothing else depends on it
        if task is not None:
            task.cancel()


def own_service(who: Principal) -> str:
    """Return which service calls. Raises `Unavailable` for anybody else."""
    if who.kind != "skill":
        raise Unavailable(f"Only services keep state of their own, and {who.kind} {who.id} is none.")
    return who.id
