# shape: table
"""Every hook point: its class, what a handler is told, what it may change, and one sentence. The docs are made of this.

A handler gets `input`, which is fixed, and `output`, which it may answer with a changed copy of. See `hooks.py` for
how handlers are called.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from operant.kernel.records import (
    Agent,
    Delta,
    Ending,
    Event,
    InboxItem,
    Json,
    Message,
    Mode,
    Parameters,
    Part,
    Record,
    Reply,
    SessionInfo,
    ToolResult,
    ToolSpec,
    Trigger,
    Usage,
)

In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)

Class = Literal["gate", "transform", "provider", "event"]


class Point(Record, Generic[In, Out]):
    """A named place where other code observes, rewrites, rejects or answers.

    Filling in one of the `additions` of the output is no rewriting, and is not put on record as such.
    """

    name: str
    kind: Class
    input: type[In]
    output: type[Out]
    doc: str
    additions: tuple[str, ...] = ()


class Nothing(Record):
    """The output of points that may only be observed."""


class Allow(Record):
    """Let it pass; says no more than returning nothing."""


class Reject(Record):
    """Refuse it; `reason` is read by the person or the model, `code` is how a turn that is refused a call ends."""

    reason: str
    code: Ending = "rejected"


class Ask(Record):
    """Have a person decide; `question` says what is at stake."""

    question: str = ""


Verdict = Allow | Reject | Ask


class Progress(Record):
    """How far a turn has come, by the log alone."""

    turn: str = ""
    trigger: Trigger = "message"
    mode: Mode = "chat"
    author: str = ""
    started: int = 0
    steps: int = 0
    usage: Usage = Usage()
    repeated: int = 0
    malformed: int = 0
    resumed: int = 0


# ---------------------------------------------------------------------------- dispatch and session


class DispatchInput(Record):
    """A message that is about to start or join a turn."""

    session: str
    agent: Agent
    item: InboxItem


class DispatchOutput(Record):
    """The message as it enters the history; `ambient` is what changes by the minute and travels with it."""

    parts: tuple[Part, ...]
    labels: tuple[str, ...] = ()
    ambient: str = ""


class SessionOpenInput(Record):
    """A session that is about to be opened."""

    session: str
    agent: Agent
    item: InboxItem


class SessionOpenOutput(Record):
    """What the session is called."""

    title: str = ""


class AppendInput(Record):
    """An event that is about to be appended."""

    session: str
    type: str


class AppendOutput(Record):
    """The event's body as JSON text; a handler may take words out of it (redaction), not change its shape."""

    body: str


# ---------------------------------------------------------------------------- context and model


class AssembleInput(Record):
    """A model call is about to be made; `overflow` says that the last one was refused as too long.

    `first` is true for the first call of a turn. `messages` is the kernel's projection, `seqs` the event of each
    message (0 for a summary), `turns` the seqs of the messages that began a turn.
    """

    session: str
    agent: Agent
    model: str
    window: int
    messages: tuple[Message, ...]
    seqs: tuple[int, ...]
    turns: tuple[int, ...]
    tokens: int
    tools: tuple[ToolSpec, ...]
    seq: int
    first: bool = False
    overflow: bool = False


class Compaction(Record):
    """Send everything up to `upto` in a shorter form from now on."""

    upto: int
    summary: str
    strategy: Literal["summary", "mask", "window"]


class AssembleOutput(Record):
    """What the model is sent, or `compact`: what to put on record first, after which assembly is asked again."""

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    reason: str = ""
    compact: Compaction | None = None


class CompactInput(Record):
    """A range of history, as messages, that is to become a summary; `window` is the model's, 0 when unknown."""

    session: str
    agent: Agent
    model: str
    messages: tuple[Message, ...]
    window: int = 0


class CompactOutput(Record):
    """The summary; empty when nobody could make one."""

    summary: str = ""


class ModelInput(Record):
    """A model is needed."""

    session: SessionInfo
    agent: Agent
    purpose: str = "turn"


class ModelOutput(Record):
    """The chain to try, best first, as `provider/model`."""

    chain: tuple[str, ...] = ()
    parameters: Parameters = Parameters()


class ComputeInput(Record):
    """A model call that is about to be made; `estimate` is its input in tokens."""

    session: SessionInfo
    agent: Agent
    model: str
    progress: Progress
    estimate: int
    purpose: str = "turn"


class ComputeOutput(Record):
    """What may be changed of a call without touching its prefix."""

    parameters: Parameters


class ComputedInput(Record):
    """A model call that came back."""

    session: SessionInfo
    agent: Agent
    model: str
    progress: Progress
    purpose: str = "turn"


class ComputedOutput(Record):
    """The reply as it goes on record; `usd` is what the call cost, where somebody knows."""

    reply: Reply
    usd: float | None = None


class ErrorInput(Record):
    """A model call that failed; `attempt` counts calls to this model, from 1."""

    session: str
    agent: Agent
    model: str
    chain: tuple[str, ...]
    kind: str
    sentence: str
    retriable: bool
    retry_after: float | None
    attempt: int
    compacted: bool = False


class ErrorOutput(Record):
    """What to do: try again after `wait_s`, go on with `model`, compact and try again, or end the turn."""

    then: Literal["retry", "next", "compact", "fail"]
    wait_s: float = 0.0
    model: str = ""
    sentence: str = ""


# ---------------------------------------------------------------------------- tools


class ToolInput(Record):
    """A tool call on its way to its effect."""

    session: str
    agent: Agent
    call_id: str
    name: str
    spec: ToolSpec
    principal: str = ""


class ToolOutput(Record):
    """The arguments, or an answer that stands in for running the tool."""

    arguments: Json
    answer: ToolResult | None = None


class ToolAfterInput(Record):
    """A tool call that came back."""

    session: str
    agent: Agent
    call_id: str
    name: str
    arguments: Json


class ToolAfterOutput(Record):
    """The result as the model will read it."""

    result: ToolResult


class EnvInput(Record):
    """A process that a tool is about to start."""

    session: str
    agent: Agent
    name: str


class EnvOutput(Record):
    """The whole environment of that process."""

    env: dict[str, str]


# ---------------------------------------------------------------------------- skills


class SkillInput(Record):
    """A skill that an agent is about to read; `file` is one of its files, empty for its instructions."""

    session: str
    agent: Agent
    name: str
    source: str
    file: str = ""


class SkillOutput(Record):
    """What the agent will read."""

    text: str


class ServiceInput(Record):
    """A service that is about to be started: its content, its command, and what it was granted."""

    service: str
    digest: str
    command: str
    granted: tuple[str, ...] = ()


class ServiceChanged(Record):
    """A service that began or ceased to be there."""

    service: str
    reason: str = ""


# ---------------------------------------------------------------------------- messages and events


class MessageInput(Record):
    """A message on its way to a person."""

    session: str
    agent: Agent
    channel: str
    chat: str


class MessageOutput(Record):
    """Its parts."""

    parts: tuple[Part, ...]


class Happened(Record):
    """An event that was committed."""

    event: Event


class Streamed(Record):
    """What a model says, as it arrives; never stored."""

    delta: Delta


class Plain(Record):
    """Something that happened outside any history."""

    what: str = ""
    data: Json = {}


def _gate(name: str, i: type[In], o: type[Out], doc: str, *additions: str) -> Point[In, Out]:
    return Point(name=name, kind="gate", input=i, output=o, doc=doc, additions=additions)


def _transform(name: str, i: type[In], o: type[Out], doc: str, *additions: str) -> Point[In, Out]:
    return Point(name=name, kind="transform", input=i, output=o, doc=doc, additions=additions)


def _provider(name: str, i: type[In], o: type[Out], doc: str) -> Point[In, Out]:
    return Point(name=name, kind="provider", input=i, output=o, doc=doc)


def _event(name: str, i: type[In], doc: str) -> Point[In, Nothing]:
    return Point(name=name, kind="event", input=i, output=Nothing, doc=doc)


DISPATCH_BEFORE = _gate(
    "dispatch.before",
    DispatchInput,
    DispatchOutput,
    "Before a message starts or joins a turn: rewrite or reject it.",
    "ambient",
)
SESSION_OPEN_BEFORE = _gate(
    "session.open.before",
    SessionOpenInput,
    SessionOpenOutput,
    "Before a session is opened: name it or reject it.",
    "title",
)
APPEND_BEFORE = _gate(
    "history.append.before", AppendInput, AppendOutput, "Before an event is appended: take secrets out of it."
)
ASSEMBLE = _provider(
    "session.assemble",
    AssembleInput,
    AssembleOutput,
    "Before a model call: give the system prompt and tools, or ask for a compaction first.",
)
COMPACT = _provider("session.compact", CompactInput, CompactOutput, "Turn a range of history into a summary.")
COMPUTE_MODEL = _provider("compute.model", ModelInput, ModelOutput, "Choose the models to try and how to ask them.")
COMPUTE_BEFORE = _gate(
    "compute.before", ComputeInput, ComputeOutput, "Before a model call: limit it, change its parameters or reject it."
)
COMPUTE_AFTER = _transform(
    "compute.after", ComputedInput, ComputedOutput, "After a model call: rewrite the reply, price it.", "usd"
)
COMPUTE_ERROR = _provider("compute.error", ErrorInput, ErrorOutput, "After a failed model call: say what to try next.")
TOOL_ENV = _transform("tool.env", EnvInput, EnvOutput, "Before a tool starts a process: change its environment.")
TOOL_BEFORE = _gate(
    "tool.before", ToolInput, ToolOutput, "Before a tool runs: rewrite, answer, reject, or have a person asked."
)
TOOL_AFTER = _transform("tool.after", ToolAfterInput, ToolAfterOutput, "After a tool ran: rewrite its result.")
MESSAGE_BEFORE = _gate("message.before", MessageInput, MessageOutput, "Before a message is queued for a person.")
SKILL_LOAD_BEFORE = _gate("skill.load.before", SkillInput, SkillOutput, "Before an agent reads a skill.")
SERVICE_START_BEFORE = _gate(
    "service.start.before",
    ServiceInput,
    Nothing,
    "Before the service of a skill is started; a service that is down itself is not asked.",
)

TURN_STARTED = _event("turn.started", Happened, "A turn began or was taken up again.")
TURN_ENDED = _event("turn.ended", Happened, "A turn is over.")
COMPUTE_DELTA = _event("compute.delta", Streamed, "A model said a little more.")
MODEL_FAILED = _event("model.failed", Happened, "A model call failed.")
SESSION_OPENED = _event("session.opened", Happened, "A session was opened.")
SESSION_ARCHIVED = _event("session.archived", Happened, "A session was archived.")
APPROVAL_ASKED = _event("approval.asked", Happened, "A person is asked about a call.")
APPROVAL_ANSWERED = _event("approval.answered", Happened, "Somebody answered.")
SKILL_STARTED = _event("skill.started", ServiceChanged, "The service of a skill is there.")
SKILL_STOPPED = _event("skill.stopped", ServiceChanged, "The service of a skill was stopped, or has ended.")
SKILL_FAILED = _event("skill.failed", ServiceChanged, "The service of a skill does not start and is not tried again.")
DAEMON_STARTED = _event("daemon.started", Plain, "The system is ready.")
DAEMON_STOPPING = _event("daemon.stopping", Plain, "The system stops accepting.")

POINTS: dict[str, Point[Record, Record]] = {
    value.name: value for value in list(globals().values()) if isinstance(value, Point)
}
