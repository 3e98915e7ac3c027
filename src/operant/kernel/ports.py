# shape: table
"""What the kernel needs from outside, as protocols. Contracts stand here; implementations hold them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from operant.kernel.records import (
    Address,
    Agent,
    BlobRef,
    Chosen,
    Damage,
    Event,
    Hit,
    InboxItem,
    Json,
    ModelRequest,
    OutboxItem,
    Price,
    Record,
    SessionInfo,
    StreamPart,
    ToolResult,
    ToolSpec,
    UsageRow,
)


class Clock(Protocol):
    """Tell the time and wait; tests bring one that they move by hand."""

    def now(self) -> int:
        """Return microseconds since 1970, UTC. May jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump; the base of every deadline and duration."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Ids(Protocol):
    """Make identifiers."""

    def new(self) -> str:
        """Return a fresh UUIDv7 as text; later ones sort after earlier ones."""
        ...

    def jitter(self) -> float:
        """Return a random number from 0 up to 1."""
        ...


# ---------------------------------------------------------------------------- store


class Append(Record):
    """Add events to a session; the store projects them onto its lists in the same transaction.

    `session.opened` makes the session's row, `message.received` settles its inbox item, `message.queued` makes an
    outbox item (`message.delivered` and `message.failed` settle it), `turn.started` and `turn.ended` open and close
    the session, `model.replied` and `model.failed` count usage. With `copied`, as in a fork, they were counted and
    delivered elsewhere: no usage, no outbox, no inbox.
    """

    events: tuple[Event, ...]
    agent: str
    user: str = ""
    purse: Literal["chat", "background"] = "chat"
    copied: bool = False


class Accept(Record):
    """Take a message in, once per (channel, account, external id) and once per item id."""

    item: InboxItem


class Decline(Record):
    """Settle an inbox item that will never reach the history."""

    inbox_id: str
    reason: str


class Hand(Record):
    """Mark outbox items as handed to the platform from now on, attempt `attempts`."""

    outbox_id: str
    attempts: int


class Postpone(Record):
    """Put an outbox item back to `waiting` until a time in microseconds; also revives a dead letter."""

    outbox_id: str
    next_at: int
    attempts: int
    error: str = ""
    expires: int | None = None


class Snapshot(Record):
    """Keep a session's projection as it was after event `seq`; `data` is opaque to the store."""

    session: str
    seq: int
    version: str
    data: bytes


class Erase(Record):
    """Remove every trace of a session. The only operation that deletes history."""

    session: str


class PutValue(Record):
    """Set a value of an extension; None deletes it. `expires` is a time in microseconds, 0 for never."""

    namespace: str
    key: str
    value: bytes | None
    expires: int = 0


Operation = Append | Accept | Decline | Hand | Postpone | Snapshot | Erase | PutValue


class Head(Record):
    """Where a session's history ends, and its newest snapshot that is not newer than that."""

    info: SessionInfo
    seq: int
    snapshot: Snapshot | None = None


class Health(Record):
    """Whether the store accepts; `reason` and `hint` are for a person."""

    accepting: bool
    reason: str = ""
    hint: str = ""


class Store(Protocol):
    """Keep events and the lists projected from them.

    Contract: every method may raise `StoreStopped`; nothing else but what is named. A call that was cancelled may
    still have been carried out.
    """

    def submit(self, *operations: Operation) -> asyncio.Future[None]:
        """Start a `write` that is carried out whether or not anybody waits for it; never cancelled by a waiter."""
        ...

    async def write(self, *operations: Operation) -> None:
        """Carry out all operations in one transaction; on return they are as durable as the store is set to be.

        Writes are carried out in the order of the calls. Raises `Conflict` when an event's (session, seq) is taken,
        when an event's seq does not follow the session's last one, or when an accepted message was accepted before;
        `Invalid` for what cannot be stored, such as half a surrogate pair; `Damaged` for a session that is.
        """
        ...

    async def head(self, session: str) -> Head | None:
        """Return where a session ends, or None when there is no such session. Raises `Damaged`."""
        ...

    async def events(self, session: str, after: int = 0, limit: int = 0) -> Sequence[Event]:
        """Return events with seq > `after` in order, at most `limit` (0: all).

        Damaged records are left out, and reported by `damages`.
        """
        ...

    async def sessions(
        self, *, limit: int = 50, before: int = 0, archived: bool = False, agent: str = ""
    ) -> Sequence[SessionInfo]:
        """List sessions, the last changed first, those changed before a time in microseconds (0: all)."""
        ...

    async def unfinished(self) -> Sequence[str]:
        """List the sessions with an open turn or waiting inbox items, without reading histories."""
        ...

    async def accepted(self, channel: str, account: str, external_id: str) -> InboxItem | None:
        """Find the message that was accepted under a platform's id."""
        ...

    async def inbox(self, session: str) -> Sequence[InboxItem]:
        """List a session's waiting items, oldest first."""
        ...

    async def inbox_item(self, inbox_id: str) -> InboxItem | None:
        """Return one inbox item in any state."""
        ...

    async def outbox(
        self, *, states: tuple[str, ...] = ("waiting", "handed"), session: str = "", limit: int = 0
    ) -> Sequence[OutboxItem]:
        """List outbox items in the given states, oldest first."""
        ...

    async def outbox_item(self, outbox_id: str) -> OutboxItem | None:
        """Return one outbox item in any state."""
        ...

    async def search(self, query: str, *, session: str = "", limit: int = 20) -> Sequence[Hit]:
        """Find events by words, best first; any text is a valid query."""
        ...

    async def usage(self, since_day: str = "") -> Sequence[UsageRow]:
        """Return usage from a day on (`YYYY-MM-DD`, UTC; empty: all)."""
        ...

    async def value(self, namespace: str, key: str) -> bytes | None:
        """Return an extension's value, or None when it is absent or expired."""
        ...

    async def values(
        self, namespace: str, prefix: str = "", after: str | None = None, limit: int = 0
    ) -> Sequence[tuple[str, bytes]]:
        """List an extension's values by key: those after a key, and at most so many (0: all)."""
        ...

    async def put_blob(self, data: bytes, media_type: str = "application/octet-stream", name: str = "") -> BlobRef:
        """Keep bytes under the digest of their content; unreferenced ones are collected later."""
        ...

    async def get_blob(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        """Return bytes of a blob (0: to its end). Raises `NotFound`, or `Damaged` when they are not its content."""
        ...

    async def damages(self) -> Sequence[Damage]:
        """List the damage found so far."""
        ...

    @property
    def health(self) -> Health:
        """Tell whether writes are accepted now."""
        ...

    async def recovered(self) -> None:
        """Return when the store accepts again after having stopped; waits for ever while all is well."""
        ...


# ---------------------------------------------------------------------------- the rest


class Facts(Record):
    """What is known about a model; where nothing is, a cautious guess. Sizes are in tokens, `output` 0 for unknown."""

    window: int = 128_000
    output: int = 0
    price: Price | None = None
    tools: bool = True
    images: bool = True
    files: bool = False
    reasoning: bool = False


class Model(Protocol):
    """Speak one provider's protocol under the provider's name in the configuration."""

    name: str

    def facts(self, model: str) -> Facts:
        """Return what is known about a model; asked on every call, so it must be quick."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Yield deltas and then exactly one `Reply`.

        Contract: raises only `ModelError`; closing the generator closes the connection at once; `request.model` has
        no provider prefix; a tool call is part of the `Reply` only when it arrived whole.
        """
        ...


class Blobs(Protocol):
    """Keep bytes outside the log; the part of `Store` that tools and providers get."""

    async def put_blob(self, data: bytes, media_type: str = "application/octet-stream", name: str = "") -> BlobRef:
        """Keep bytes under the digest of their content."""
        ...

    async def get_blob(self, digest: str, offset: int = 0, limit: int = 0) -> bytes:
        """Return bytes of a blob (0: to its end). Raises `NotFound` or `Damaged`."""
        ...


class Output(Protocol):
    """Take a tool's output while it runs."""

    def __call__(self, text: str, /) -> None:
        """Take a piece of output."""
        ...


class CallContext(Record):
    """What a tool may know of the call that it serves; nothing in it is shared with another call."""

    call_id: str
    session: str
    turn: str
    agent: Agent
    key: str
    principal: str = ""
    repeated: bool = False


class Tool(Protocol):
    """Do one thing for a model."""

    @property
    def spec(self) -> ToolSpec:
        """Return what a model is told of it."""
        ...

    def check(self, arguments: Json) -> Json:
        """Return the arguments as the schema has them, defaults filled in. Raises `Invalid` naming what is wrong."""
        ...

    async def run(self, call: CallContext, arguments: Json, output: Output) -> ToolResult:
        """Run with arguments that fit the schema. A failure the model can act on is a result, not an exception.

        Contract: on cancellation nothing of it runs on. `call.key` is the same when the same call is run again.
        """
        ...


class Toolbox(Protocol):
    """Offer tools that come and go, or that only some agents have."""

    def tools(self, agent: Agent, session: str = "") -> Mapping[str, Tool]:
        """Return an agent's tools by name as they are now, in a session; asked on every step, so it must be quick.

        A name that the system itself has is not offered.
        """
        ...


class Agents(Protocol):
    """Know the agents of this home, as their files stand now."""

    def get(self, name: str) -> Agent:
        """Return an agent (empty name: the default one). Raises `NotFound`."""
        ...

    def list(self) -> Sequence[Agent]:
        """Return all agents by name."""
        ...

    def which(self, address: Address, user: str) -> Chosen:
        """Return who answers a message that names no agent."""
        ...


class Receipt(Record):
    """What a platform says about a message that it took."""

    platform_id: str = ""


class Channel(Protocol):
    """Be an edge to a chat platform or protocol.

    `exact`: the platform drops a repeat of the same outbox id, or the channel can find out; such a channel is never
    asked to mark a repeat. `pull`: readers follow the history themselves, so queueing is delivering.
    """

    name: str
    exact: bool
    pull: bool

    def open(self) -> AbstractAsyncContextManager[None]:
        """Listen while the context is open."""
        ...

    async def send(self, item: OutboxItem, *, repeat: bool) -> Receipt:
        """Hand a message over; `repeat` asks for a visible mark that it may have been shown before.

        Raises `Unavailable` (not taken, try again later), `Uncertain` (perhaps taken), `Invalid` or `Refused` (never).
        """
        ...

    async def find(self, item: OutboxItem) -> Receipt | None:
        """Ask the platform whether it already has this message. Raises `Unavailable` when it cannot tell."""
        ...

    async def notice(self, address: Address, text: str) -> None:
        """Show something that is not kept, such as that work goes on; may do nothing."""
        ...


class Faults(Protocol):
    """Stop the process at a named point; does nothing unless a test asked for it."""

    def __call__(self, point: str, /) -> None:
        """Pass a point."""
        ...
