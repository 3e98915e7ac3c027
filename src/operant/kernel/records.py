# shape: table
"""The data that crosses module borders: frozen, typed, and plain enough to be stored as JSON.

Times are integers of microseconds since 1970 in UTC. Durations carry their unit in the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform

import msgspec

Json = dict[str, Any]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class RecordMeta(msgspec.StructMeta):
    """Make keyword-only the default of every subclass; msgspec does not inherit it."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        """Make the class."""
        options.setdefault("kw_only", True)
        return super().__new__(mcs, name, bases, namespace, **options)


class Record(msgspec.Struct, metaclass=RecordMeta, frozen=True, omit_defaults=True):
    """A frozen record; fields at their default are left out of its JSON."""


# ---------------------------------------------------------------------------- parts of a message


class BlobRef(Record, tag_field="type", tag="blob"):
    """Bytes that live outside the log, named by the SHA-256 of their content."""

    digest: str
    size: int
    media_type: str = "application/octet-stream"
    name: str = ""


class Text(Record, tag_field="type", tag="text"):
    """Words."""

    text: str


class Reasoning(Record, tag_field="type", tag="reasoning"):
    """A model's thinking; `opaque` is what its provider wants back unchanged."""

    text: str
    opaque: str = ""


class ToolCall(Record, tag_field="type", tag="tool_call"):
    """A call that the model asked for; `arguments` is its JSON exactly as the model wrote it.

    `opaque` is what its provider wants back unchanged with the call.
    """

    id: str
    name: str
    arguments: str
    opaque: str = ""


Part = Text | Reasoning | ToolCall | BlobRef


def text_of(parts: tuple[Part, ...]) -> str:
    """Join the words of some parts; reasoning and calls are left out."""
    return "".join(part.text for part in parts if isinstance(part, Text))


class Message(Record):
    """One message as a model is sent it, in no provider's shape."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...]
    call_id: str = ""
    name: str = ""


class Address(Record):
    """Where a message comes from or goes to."""

    channel: str
    chat: str
    thread: str = ""
    account: str = ""


class Usage(Record):
    """Tokens of one or more model calls; `input` includes `cached` and `cache_write`."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    calls: int = 0
    usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            calls=self.calls + other.calls,
            usd=self.usd + other.usd,
        )


# ---------------------------------------------------------------------------- events

Effect = Literal["read", "idempotent", "external"]
Outcome = Literal["ok", "error", "denied", "interrupted", "cancelled", "timeout"]
Ending = Literal["done", "stopped", "max_steps", "budget", "error", "rejected"]
Trigger = Literal["message", "job", "heartbeat", "agent", "resume"]
Mode = Literal["chat", "deep"]


class Body(Record):
    """What an event says; each subclass is one event type."""

    type: ClassVar[str] = ""


class SessionOpened(Body):
    """A conversation began."""

    type = "session.opened"
    agent: str
    channel: str = ""
    chat: str = ""
    thread: str = ""
    title: str = ""
    parent: str = ""


class SessionChanged(Body):
    """The person or a program changed what a session is called or which model answers it."""

    type = "session.changed"
    title: str | None = None
    model: str | None = None
    archived: bool | None = None


class MessageReceived(Body):
    """A message entered the history; `ambient` is what changes by the minute and travels with it."""

    type = "message.received"
    parts: tuple[Part, ...]
    author: str = ""
    inbox_id: str = ""
    external_id: str = ""
    reply_to: str = ""
    address: Address | None = None
    labels: tuple[str, ...] = ()
    ambient: str = ""


class TurnStarted(Body):
    """A turn began, or another process took it up again (`trigger` is `resume`)."""

    type = "turn.started"
    trigger: Trigger = "message"
    mode: Mode = "chat"


class ContextOpened(Body):
    """The system prompt and tool schemas that requests use from here on."""

    type = "context.opened"
    system: BlobRef
    tools: BlobRef
    reason: str = ""


class ModelReplied(Body):
    """A model answered; `purpose` tells the turn's own calls from those made on its behalf."""

    type = "model.replied"
    parts: tuple[Part, ...]
    model: str
    provider: str
    finish: str = "stop"
    usage: Usage = Usage()
    latency_ms: float = 0.0
    first_token_ms: float = 0.0
    attempts: int = 1
    purpose: str = "turn"


class ModelFailed(Body):
    """A model call failed; `then` says what is tried next."""

    type = "model.failed"
    model: str
    provider: str
    error: str
    sentence: str = ""
    retriable: bool = False
    then: str = "fail"
    usage: Usage = Usage()
    purpose: str = "turn"


class ToolStarted(Body):
    """The intent to run a tool, on record before the tool can do anything."""

    type = "tool.started"
    call_id: str
    name: str
    arguments: Json
    effect: Effect = "external"
    key: str = ""


class ToolEnded(Body):
    """What became of a call; `artifacts` are files and long outputs kept as blobs."""

    type = "tool.ended"
    call_id: str
    name: str = ""
    outcome: Outcome
    parts: tuple[Part, ...] = ()
    artifacts: tuple[BlobRef, ...] = ()
    duration_ms: float = 0.0
    labels: tuple[str, ...] = ()


class ApprovalAsked(Body):
    """A person is asked whether exactly this call may run; `expires` is a time in microseconds."""

    type = "approval.asked"
    approval_id: str
    call_id: str
    name: str
    arguments: Json
    digest: str
    question: str = ""
    expires: int = 0


class ApprovalAnswered(Body):
    """Somebody answered; `scope` is how long the answer stands for the same arguments."""

    type = "approval.answered"
    approval_id: str
    call_id: str
    answer: Literal["allow", "deny"]
    scope: Literal["once", "session"] = "once"
    by: str = ""
    reason: str = ""


class TaskChanged(Body):
    """A task of the session's task tree is new, or stands differently now."""

    type = "task.changed"
    id: str
    title: str = ""
    state: Literal["pending", "active", "done", "failed", "dropped"] = "pending"
    parent: str = ""
    depends_on: tuple[str, ...] = ()
    note: str = ""


class ContextCompacted(Body):
    """Everything up to `upto` is sent in a shorter form; nothing is deleted.

    `summary` and `window` send `summary` in place of what went before; `mask` sends it in place of each tool result.
    """

    type = "context.compacted"
    upto: int
    summary: str
    strategy: Literal["summary", "mask", "window"]
    tokens_before: int = 0
    tokens_after: int = 0


class MessageQueued(Body):
    """What the person will see, and where."""

    type = "message.queued"
    outbox_id: str
    parts: tuple[Part, ...]
    address: Address
    reply_to: str = ""
    expires: int = 0


class MessageDelivered(Body):
    """The platform took the message; `repeat` says that it may have been shown before."""

    type = "message.delivered"
    outbox_id: str
    platform_id: str = ""
    attempts: int = 1
    repeat: bool = False


class MessageFailed(Body):
    """The message will not be tried again by itself."""

    type = "message.failed"
    outbox_id: str
    error: str
    attempts: int = 0


class TurnEnded(Body):
    """A turn is over; `sentence` is what the person was told when it did not end well."""

    type = "turn.ended"
    reason: Ending
    usage: Usage = Usage()
    steps: int = 0
    sentence: str = ""


class Note(Body):
    """Anything that an extension or a hook wants on record."""

    type = "note"
    kind: str
    text: str = ""
    data: Json = {}


class Unknown(msgspec.Struct, frozen=True):
    """The body of an event type that this program does not know; kept and skipped."""

    data: Any


BODIES: dict[str, type[Body]] = {body.type: body for body in Body.__subclasses__()}


if TYPE_CHECKING:
    EventBody = Body | Unknown
else:
    EventBody = Any  # msgspec cannot choose between structs without tags; `Event.type` does


class Event(Record):
    """One immutable fact in a session's history; `seq` counts from 1 without gaps."""

    session: str
    seq: int
    id: str
    type: str
    at: int
    body: EventBody
    turn: str = ""
    actor: str = ""

    def __post_init__(self) -> None:
        """Make a body of the data that came over a wire, by `type`."""
        if isinstance(self.body, dict):
            kind = BODIES.get(self.type)
            body = msgspec.convert(self.body, kind) if kind else Unknown(data=self.body)
            msgspec.structs.force_setattr(self, "body", body)


# ---------------------------------------------------------------------------- tools and models


class ToolSpec(Record):
    """What a model is told about a tool, and what the kernel must know to run it.

    A `deferred` tool is not among those that a model is told about; a tool that `forwards` reaches it: a call of that
    one, with the arguments `name` and `arguments`, is a call of the tool named there.
    """

    name: str
    description: str
    schema: Json
    effect: Effect = "external"
    timeout_s: float = 120.0
    deferred: bool = False
    forwards: bool = False


class ToolResult(Record):
    """What a tool gives back; a failure is a value because the model must read it."""

    parts: tuple[Part, ...] = ()
    outcome: Outcome = "ok"
    artifacts: tuple[BlobRef, ...] = ()
    labels: tuple[str, ...] = ()


Effort = Literal["none", "low", "medium", "high"]


class Parameters(Record):
    """How a model is asked; None leaves the choice to the provider. `schema` is what its answer must be as JSON."""

    max_output_tokens: int | None = None
    temperature: float | None = None
    effort: Effort | None = None
    schema: Json | None = None


class ModelRequest(Record):
    """One model call in no provider's shape."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    parameters: Parameters = Parameters()
    session: str = ""


class Rates(Record):
    """US dollars per million tokens; `cached` and `cache_write` default to `input`."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        """Return what a call costs in US dollars; reasoning is part of the output."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        fresh = max(0, usage.input - usage.cached - usage.cache_write)
        total = fresh * self.input + usage.cached * cached + usage.cache_write * written + usage.output * self.output
        return total / 1_000_000


class Price(Rates):
    """What a model costs; a call with more than `above` tokens of input costs `beyond` from its first token on."""

    above: int = 0
    beyond: Rates | None = None

    def rates(self, tokens: int) -> Rates:
        """Return the rates of a call with so many tokens of input."""
        return self.beyond if self.beyond is not None and tokens > self.above else self

    def of(self, usage: Usage) -> float:
        """Return what a call costs in US dollars; reasoning is part of the output."""
        return Rates.of(self.rates(usage.input), usage)


class TextDelta(Record, tag_field="type", tag="text"):
    """Words as they arrive."""

    text: str


class ReasoningDelta(Record, tag_field="type", tag="reasoning"):
    """Thinking as it arrives."""

    text: str


class Reply(Record, tag_field="type", tag="reply"):
    """The end of a stream: everything that the model said, its calls whole."""

    parts: tuple[Part, ...]
    model: str
    provider: str
    finish: str = "stop"
    usage: Usage = Usage()


StreamPart = TextDelta | ReasoningDelta | Reply


class Delta(Record):
    """What subscribers see while a turn works; never stored.

    `kind`: `text`, `reasoning`, `tool` (live output of the call in `call_id`), `notice`, `restart` (discard the text
    of this step: its model call is tried again).
    """

    session: str
    turn: str
    kind: Literal["text", "reasoning", "tool", "notice", "restart"]
    text: str = ""
    call_id: str = ""


# ---------------------------------------------------------------------------- agents


class Limits(Record):
    """Where a turn must end; each limit is told to the person when it binds."""

    max_steps: int = 25
    turn_s: float = 3600.0
    turn_tokens: int | None = None
    stall_notice_s: float = 30.0
    stall_s: float = 120.0
    tool_output_chars: int = 16_000
    repeated_calls: int = 3
    malformed_calls: int = 3


class Permissions(Record):
    """What an agent may use: names, or patterns with `*`; `deny` wins."""

    tools: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    skills: tuple[str, ...] = ("*",)
    extensions: tuple[str, ...] = ("*",)
    """Extensions that do not come with Operant."""


class Agent(Record):
    """An agent as it stands at the start of a turn."""

    name: str
    prompt: str = ""
    models: tuple[str, ...] = ()
    workspace: str = ""
    permissions: Permissions = Permissions()
    approval: dict[str, Literal["ask", "allow", "deny"]] = {}
    limits: Limits = Limits()
    arrival: Literal["steer", "queue", "interrupt"] = "steer"
    context_strategy: Literal["compact", "mask", "window"] = "compact"
    context_ratio: float = 0.5
    max_output_tokens: int | None = None
    timezone: str = "UTC"
    description: str = ""
    sandbox: bool = True
    network: tuple[str, ...] = ()
    """Hosts that its commands may reach; `*` for all of them."""
    effort: Effort | None = None
    helpers: dict[str, str] = {}
    """Agents that it may call by name, with what each is for; they do no more than it may."""


class Chosen(Record):
    """The agent that answers somewhere, and why; `bound`: a rule names it."""

    agent: str
    why: str = ""
    bound: bool = False


# ---------------------------------------------------------------------------- what the store keeps beside events


class InboxItem(Record):
    """An accepted message on its way into the history."""

    id: str
    session: str
    parts: tuple[Part, ...]
    address: Address
    accepted: int
    author: str = ""
    external_id: str = ""
    reply_to: str = ""
    trigger: Trigger = "message"
    mode: Mode = "chat"
    labels: tuple[str, ...] = ()
    agent: str = ""
    state: Literal["waiting", "received", "rejected"] = "waiting"
    seq: int = 0
    reason: str = ""


class OutboxItem(Record):
    """A message on its way to a person.

    `waiting`: not yet handed to the platform. `handed`: given to the platform, outcome unknown until settled.
    `delivered` and `dead` are final; a dead letter can be queued again.
    """

    id: str
    session: str
    parts: tuple[Part, ...]
    address: Address
    queued: int
    reply_to: str = ""
    state: Literal["waiting", "handed", "delivered", "dead"] = "waiting"
    attempts: int = 0
    next_at: int = 0
    expires: int = 0
    error: str = ""
    platform_id: str = ""


class SessionInfo(Record):
    """A session as lists show it."""

    key: str
    agent: str
    channel: str = ""
    chat: str = ""
    thread: str = ""
    title: str = ""
    model: str = ""
    created: int = 0
    updated: int = 0
    events: int = 0
    state: Literal["idle", "open", "archived", "damaged"] = "idle"
    parent: str = ""
    usage: Usage = Usage()


class UsageRow(Record):
    """Tokens and money by day, session, agent, user, model and purse (`chat` or `background`)."""

    day: str
    session: str
    agent: str
    user: str
    model: str
    purse: Literal["chat", "background"]
    usage: Usage


class Hit(Record):
    """One event that a search of the history found."""

    session: str
    seq: int
    at: int
    type: str
    text: str


class Damage(Record):
    """Something in the store that is not as it was written, and what was done about it."""

    what: str
    where: str
    found: int
    action: str


class Principal(Record):
    """Who is calling: `admin` among the capabilities stands for all of them."""

    kind: Literal["owner", "user", "agent", "skill", "client", "extension", "kernel"]
    id: str
    capabilities: frozenset[str] = frozenset()


OWNER = Principal(kind="owner", id="owner", capabilities=frozenset({"admin"}))
