"""One connection to a service: requests and answers both ways, a line each."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from operant.ext.services.wire import LONGEST, Cancel, Message, ProgressMade
from operant.kit.jsonrpc import Failure, Fault, Request, Result, encode
from operant.kit.text import plain
from operant.sdk import Invalid, Output, Unavailable

_UNREAD = 8 * LONGEST
"""Bytes that a service may leave unread before it is taken for dead."""
_message = msgspec.json.Decoder(Message)


class TooLong(Invalid):
    """Report that a message has more bytes than one may have."""


class Ear(Protocol):
    """Whoever hears what a service asks and tells."""

    def asked(self, message: Message, context: contextvars.Context | None) -> None:
        """Take a request or a notification; `context` is that of the handler in which it was made."""
        ...

    def lost(self, reason: str) -> None:
        """Take it that the service is gone."""
        ...


class _Asked(NamedTuple):
    """A request that is not answered yet; what the service asks meanwhile happens in its context."""

    future: asyncio.Future[msgspec.Raw]
    context: contextvars.Context
    output: Output | None


class Line(asyncio.Protocol):
    """A connected service."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._last = 0
        self._open: dict[int, _Asked] = {}
        self._reason = ""
        self._closed = False

    async def ask(self, method: str, params: Any, output: Output | None = None) -> msgspec.Raw:
        """Ask and return the result; `output` takes the progress that is told meanwhile.

        Raises `Unavailable` when there is no answer, `Invalid` when it is an error.
        """
        self._last += 1
        id = self._last
        future: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._open[id] = _Asked(future, contextvars.copy_context(), output)
        try:
            self._write(encode(Request(method=method, params=params, id=id)))
            return await future
        except asyncio.CancelledError:
            self.tell("cancel", Cancel(id=id))
            raise
        finally:
            del self._open[id]

    def tell(self, method: str, params: Any) -> None:
        """Tell; nobody waits for an answer. What is longer than a message may be is not told."""
        line = encode(Request(method=method, params=params))
        if len(line) <= LONGEST:
            self._say(line)

    def answer(self, id: int | str, result: Any) -> None:
        """Answer a request of the service. Raises `TooLong`."""
        line = encode(Result(id=id, result=result))
        if len(line) > LONGEST:
            raise TooLong(f"The answer has {len(line)} bytes, and a message may have {LONGEST}.", "Ask for less.")
        self._say(line)

    def refuse(self, id: int | str | None, fault: Fault) -> None:
        """Answer a request of the service with an error."""
        self._say(encode(Failure(id=id, error=fault)))

    def close(self, reason: str) -> None:
        """Hang up."""
        self._reason = reason
        self._closed = True
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------------ what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take what came; the rest of an unfinished line waits for more."""
        *lines, rest = (self._rest + data).split(b"\n") if self._rest else data.split(b"\n")
        self._rest = rest
        if len(rest) > LONGEST or any(len(line) > LONGEST for line in lines):
            self.close(f"it sent a message of more than {LONGEST} bytes")
            return
        for line in lines:
            if line.strip() and not self._closed:  # whoever broke the wire is not believed the rest
                self._take(line)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let nobody wait any more."""
        self._transport = None
        for asked in self._open.values():
            if not asked.future.done():
                asked.future.set_exception(self._gone())
        self._ear.lost(self._reason)

    # ------------------------------------------------------------------ inside

    def _take(self, line: bytes) -> None:
        try:
            message = _message.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.close(f"it sent what is no message: {error}")
            return
        if message.method == "progress":
            self._progress(message)
        elif message.method:
            self._ear.asked(message, self._context(message.within))
        else:
            self._settle(message)

    def _progress(self, message: Message) -> None:
        try:
            made = msgspec.json.decode(message.params, type=ProgressMade)
        except msgspec.MsgspecError as error:
            self.close(f"it told of progress in a way that cannot be read: {error}")
            return
        asked = self._open.get(made.id) if isinstance(made.id, int) else None
        if asked is not None and asked.output is not None:
            asked.output(plain(made.text))

    def _settle(self, message: Message) -> None:
        asked = self._open.get(message.id) if isinstance(message.id, int) else None
        if asked is None or asked.future.done():  # an answer to what was cancelled
            return
        future = asked.future
        if message.error is not None:
            future.set_exception(Invalid(f"It answered with an error: {message.error.message}"))
        elif isinstance(message.result, msgspec.Raw):
            future.set_result(message.result)
        else:
            future.set_exception(Invalid("It answered with neither a result nor an error."))

    def _context(self, within: int | str | None) -> contextvars.Context | None:
        """Return a copy of the context of the request that is being answered: the one named, or else the newest.

        A service that does not say which one is taken to be inside of all: what it asks for then is still bounded.
        A copy, because which handlers run is noted in it: two that shared one would be taken to be inside each other.
        """
        if isinstance(within, int) and within in self._open:
            return self._open[within].context.copy()
        return self._open[max(self._open)].context.copy() if self._open else None

    def _say(self, line: bytes) -> None:
        """Send what nobody waits for; it is lost when the service is gone."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > _UNREAD:
            self.close("it does not read what it is sent")
            return
        self._transport.write(line)

    def _write(self, data: bytes) -> None:
        if self._transport is None:
            raise self._gone()
        if len(data) > LONGEST:
            raise TooLong(f"It has {len(data)} bytes, and a message may have {LONGEST}.")
        if self._transport.get_write_buffer_size() > _UNREAD:
            self.close("it does not read what it is sent")
            raise self._gone()
        self._transport.write(data)

    def _gone(self) -> Unavailable:
        return Unavailable(f"The service is gone{f': {self._reason}' if self._reason else ''}.")
