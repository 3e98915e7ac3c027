# shape: table
"""The only way for code outside the kernel to change its state: one record a call, one table, one check.

In process a call is `await syscalls(principal, SessionGet(session="x"))`, typed by its record. Over a socket the same
name and fields travel as JSON-RPC. Docs and SDK types are made of these records.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from operant.kernel.errors import Conflict, Denied, Invalid, NotFound
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
    Message,
    Mode,
    OutboxItem,
    Part,
    Price,
    Principal,
    Record,
    SessionInfo,
    ToolResult,
    ToolSpec,
    Trigger,
    Usage,
    UsageRow,
)

R = TypeVar("R")


class Syscall(Record, Generic[R]):
    """Base of all calls; `R` is what the call returns."""

    call: ClassVar[str] = ""
    capability: ClassVar[str] = "admin"
    returns: ClassVar[Any] = None


# ---------------------------------------------------------------------------- sessions


class SessionOpen(Syscall[SessionInfo]):
    """Open a session, or return it when it is there; an empty key makes one. `parent` is the session it works for."""

    call = "session.open"
    capability = "session.dispatch"
    returns = SessionInfo
    session: str = ""
    agent: str = ""
    title: str = ""
    address: Address | None = None
    parent: str = ""


class SessionGet(Syscall[SessionInfo]):
    """Return one session."""

    call = "session.get"
    capability = "session.read"
    returns = SessionInfo
    session: str


class SessionList(Syscall[tuple[SessionInfo, ...]]):
    """List sessions, the last changed first."""

    call = "session.list"
    capability = "session.read"
    returns = tuple[SessionInfo, ...]
    limit: int = 50
    before: int = 0
    archived: bool = False
    agent: str = ""


class SessionUpdate(Syscall[SessionInfo]):
    """Give a session another title or another model; an empty model goes back to the agent's own."""

    call = "session.update"
    capability = "session.dispatch"
    returns = SessionInfo
    session: str
    title: str | None = None
    model: str | None = None


class Dispatched(Record):
    """An accepted message; `repeat` says that it had been accepted before."""

    inbox_id: str
    session: str
    repeat: bool = False


class SessionDispatch(Syscall[Dispatched]):
    """Hand a session a message; on return it is durable and will be answered.

    `external_id` is the platform's id of the message: the same one on the same channel and account is taken once.
    Without `agent`, the session's own answers, or in a new one whom the bindings name. Where they name another one
    than the session's, for a chat of a platform, the message goes to that agent's own session there, `KEY@AGENT`.
    """

    call = "session.dispatch"
    capability = "session.dispatch"
    returns = Dispatched
    session: str
    parts: tuple[Part, ...]
    address: Address | None = None
    agent: str = ""
    author: str = ""
    external_id: str = ""
    reply_to: str = ""
    trigger: Trigger = "message"
    mode: Mode = "chat"
    labels: tuple[str, ...] = ()


class SessionAppend(Syscall[Event]):
    """Put a note on record in a session."""

    call = "session.append"
    capability = "session.append"
    returns = Event
    session: str
    kind: str
    text: str = ""
    data: Json = {}


class SessionHistory(Syscall[tuple[Event, ...]]):
    """Return a session's events after a seq, in order."""

    call = "session.history"
    capability = "session.read"
    returns = tuple[Event, ...]
    session: str
    after: int = 0
    limit: int = 0


class Assembled(Record):
    """What a model would be sent now, in no provider's shape."""

    system: str
    messages: Any
    tools: tuple[ToolSpec, ...]
    tokens: int


class SessionAssemble(Syscall[Assembled]):
    """Return what the model was last sent for this session plus what has come since."""

    call = "session.assemble"
    capability = "session.read"
    returns = Assembled
    session: str


class Stopped(Record):
    """Whether a turn was running and has been stopped."""

    stopped: bool


class SessionStop(Syscall[Stopped]):
    """Stop the running turn; with `turn`, only if that one is still running."""

    call = "session.stop"
    capability = "session.dispatch"
    returns = Stopped
    session: str
    turn: str = ""


class SessionArchive(Syscall[SessionInfo]):
    """Take a session out of the lists, or bring it back; its history stays."""

    call = "session.archive"
    capability = "session.dispatch"
    returns = SessionInfo
    session: str
    archived: bool = True


class SessionFork(Syscall[SessionInfo]):
    """Start a new session with a copy of this one's history up to a seq (0: all)."""

    call = "session.fork"
    capability = "session.dispatch"
    returns = SessionInfo
    session: str
    upto: int = 0
    title: str = ""


class Exported(Record):
    """A session as data; `blobs` are base64 by digest."""

    format: str
    session: SessionInfo
    events: tuple[Event, ...]
    blobs: dict[str, str] = {}


class SessionExport(Syscall[Exported]):
    """Return a whole session as data."""

    call = "session.export"
    capability = "session.read"
    returns = Exported
    session: str


class SessionImport(Syscall[SessionInfo]):
    """Make a session of exported data; a key that is taken is refused unless another is given."""

    call = "session.import"
    capability = "session.dispatch"
    returns = SessionInfo
    exported: Exported
    session: str = ""


class SessionCopy(Syscall[SessionInfo]):
    """Write events anew under a key that is free; what was sent or counted where they come from is not here."""

    call = "session.copy"
    capability = "session.dispatch"
    returns = SessionInfo
    source: SessionInfo
    events: tuple[Event, ...]
    session: str = ""
    title: str = ""


class SessionErase(Syscall[Stopped]):
    """Remove every trace of a session; this cannot be undone."""

    call = "session.erase"
    capability = "session.erase"
    returns = Stopped
    session: str


class SessionSearch(Syscall[tuple[Hit, ...]]):
    """Find events by words, best first."""

    call = "session.search"
    capability = "session.read"
    returns = tuple[Hit, ...]
    query: str
    session: str = ""
    limit: int = 20


class Asked(Record):
    """What a model answered."""

    text: str


class ModelAsk(Syscall[Asked]):
    """Make a model call on behalf of a session, such as a summary: listed, budgeted and on record like any other."""

    call = "model.ask"
    capability = "model.ask"
    returns = Asked
    session: str
    purpose: str
    system: str
    messages: tuple[Message, ...]
    max_output_tokens: int | None = None


class ModelInfo(Record):
    """A model, as `provider/model`; `why` says in one sentence how it came to be used.

    `ready` tells whether its provider is there and has its key; sizes are in tokens, 0 for unknown; `can` names what it
    can take or do beside words: `tools`, `images`, `files`, `reasoning`.
    """

    model: str
    why: str = ""
    window: int = 0
    output: int = 0
    price: Price | None = None
    can: tuple[str, ...] = ()
    ready: bool = True


class ModelList(Syscall[tuple[ModelInfo, ...]]):
    """List the models that an agent uses (empty: the default one), best first; a session's own comes before them."""

    call = "model.list"
    capability = "agent.read"
    returns = tuple[ModelInfo, ...]
    agent: str = ""


class ModelGet(Syscall[ModelInfo]):
    """Return what is known of a model, as `provider/model`; of one that is in no catalogue it is a guess."""

    call = "model.get"
    capability = "agent.read"
    returns = ModelInfo
    model: str


class ModelSearch(Syscall[tuple[ModelInfo, ...]]):
    """Find models by words of their names, in the catalogue and among those that providers list themselves."""

    call = "model.search"
    capability = "agent.read"
    returns = tuple[ModelInfo, ...]
    words: str = ""


class ProviderInfo(Record):
    """A provider that is known or configured; `wants` says what it lacks where it is not `ready`."""

    name: str
    protocol: str
    address: str
    model: str = ""
    ready: bool = True
    wants: str = ""


class ProviderList(Syscall[tuple[ProviderInfo, ...]]):
    """List all providers that are known or configured, those that can be used first."""

    call = "provider.list"
    capability = "agent.read"
    returns = tuple[ProviderInfo, ...]


class ModelUse(Syscall[str]):
    """Choose the model of an agent (empty: of all agents) over what the files say, also after a restart.

    An empty model gives the choice back. Returns who is meant, in words.
    """

    call = "model.use"
    capability = "admin"
    returns = str
    model: str
    agent: str = ""


class Trial(Record):
    """One thing that a model was tried on; `ok` is None where it was not tried, and `words` say why."""

    name: str
    ok: bool | None
    words: str = ""
    ms: float = 0.0
    usd: float = 0.0


class ModelTest(Syscall[tuple[Trial, ...]]):
    """Try a model with one small call for each thing that it should be able to do (empty: the one that is used)."""

    call = "model.test"
    capability = "model.ask"
    returns = tuple[Trial, ...]
    model: str = ""


class Embeddings(Record):
    """Texts as vectors, in their order."""

    model: str
    vectors: tuple[tuple[float, ...], ...]
    usage: Usage = Usage()


class ModelEmbed(Syscall[Embeddings]):
    """Turn texts into vectors by `provider/model` (empty: the first provider that has one). Raises `ModelError`."""

    call = "model.embed"
    capability = "model.ask"
    returns = Embeddings
    texts: tuple[str, ...]
    model: str = ""
    purpose: Literal["document", "query"] = "document"


class UsageList(Syscall[tuple[UsageRow, ...]]):
    """Return usage by day, session, agent, user, model and purse, from a day on (`YYYY-MM-DD`, UTC; empty: all)."""

    call = "usage.list"
    capability = "session.read"
    returns = tuple[UsageRow, ...]
    since_day: str = ""


UsageRange = Literal["today", "7d", "30d", "all"]


class UsageLine(Record):
    """The usage of one day, model, agent, session or purse; `cached_share` is of the input, from 0 to 1."""

    name: str
    usage: Usage
    cached_share: float = 0.0


class UsageSummary(Record):
    """Usage from a day on (empty: all), in total and taken apart; days in order, the rest dearest first."""

    range: UsageRange
    since_day: str
    total: UsageLine
    days: tuple[UsageLine, ...]
    models: tuple[UsageLine, ...]
    agents: tuple[UsageLine, ...]
    sessions: tuple[UsageLine, ...]
    purses: tuple[UsageLine, ...]
    rows: tuple[UsageRow, ...]


class UsageReport(Syscall[UsageSummary]):
    """Report tokens and money by day, model, agent, session and purse."""

    call = "usage.report"
    capability = "session.read"
    returns = UsageSummary
    range: UsageRange = "7d"


# ---------------------------------------------------------------------------- agents and tools


class AgentList(Syscall[tuple[Agent, ...]]):
    """List the agents."""

    call = "agent.list"
    capability = "agent.read"
    returns = tuple[Agent, ...]


class AgentGet(Syscall[Agent]):
    """Return one agent (empty: the default one)."""

    call = "agent.get"
    capability = "agent.read"
    returns = Agent
    agent: str = ""


class AgentWhich(Syscall[Chosen]):
    """Tell which agent answers a message from somewhere, and why."""

    call = "agent.which"
    capability = "agent.read"
    returns = Chosen
    channel: str = ""
    account: str = ""
    chat: str = ""
    thread: str = ""
    user: str = ""


class AgentFile(Record):
    """A file that makes an agent what it is; `digest` is the SHA-256 of its text, empty for one that is not there."""

    name: str
    text: str = ""
    digest: str = ""


class AgentFiles(Syscall[tuple[AgentFile, ...]]):
    """Return the files of an agent: its settings and prompt, and what its workspace adds to them."""

    call = "agent.files"
    capability = "agent.read"
    returns = tuple[AgentFile, ...]
    agent: str = ""


class AgentUpdate(Syscall[AgentFile]):
    """Write one of the files of an agent; `digest` is of the text that is replaced, `Conflict` when it is another.

    What an agent may do (`sandbox`, `network`, `permissions`, `approval`) is not changed by any call: a person edits
    the file for that.
    """

    call = "agent.update"
    capability = "admin"
    returns = AgentFile
    agent: str
    name: str
    text: str
    digest: str = ""


class AgentCreate(Syscall[Agent]):
    """Make a new agent and its files."""

    call = "agent.create"
    capability = "admin"
    returns = Agent
    agent: str
    description: str = ""
    models: tuple[str, ...] = ()


class AgentRemove(Syscall[str]):
    """Put an agent's files aside and return where; nothing is deleted."""

    call = "agent.remove"
    capability = "admin"
    returns = str
    agent: str


class Finding(Record):
    """One thing that was looked at; `hint` says what to do when it is not well."""

    name: str
    ok: bool
    sentence: str
    hint: str = ""


class SkillInfo(Record):
    """A skill that was found.

    `source`: `agent`, `project`, `home`, `folder`, `person` or `shipped`, those before winning over those after.
    `state`: `ready`; `missing`, when it wants what `lacks` says; `hidden` by one of the same name; `broken`, when it
    cannot be read. `warnings` are what the standard would not let pass.
    """

    name: str
    description: str = ""
    source: str = ""
    path: str = ""
    state: Literal["ready", "missing", "hidden", "broken"] = "ready"
    lacks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    digest: str = ""
    metadata: dict[str, str] = {}


class SkillText(Record):
    """A skill with its instructions, and the files that it has."""

    info: SkillInfo
    body: str
    files: tuple[str, ...] = ()


class SkillList(Syscall[tuple[SkillInfo, ...]]):
    """List the skills that an agent finds (empty: the default one), by name."""

    call = "skill.list"
    capability = "agent.read"
    returns = tuple[SkillInfo, ...]
    agent: str = ""


class SkillRoots(Syscall[tuple[str, ...]]):
    """List the folders in which an agent's skills are looked for (empty: the default one), those that win first."""

    call = "skill.roots"
    capability = "agent.read"
    returns = tuple[str, ...]
    agent: str = ""


class SkillGet(Syscall[SkillText]):
    """Return a skill with its instructions."""

    call = "skill.get"
    capability = "agent.read"
    returns = SkillText
    skill: str
    agent: str = ""


class SkillAdd(Syscall[SkillInfo]):
    """Copy the folder of a skill into the home; nothing of it is run."""

    call = "skill.add"
    capability = "admin"
    returns = SkillInfo
    path: str


class SkillRemove(Syscall[str]):
    """Put a skill of the home aside and return where; nothing is deleted."""

    call = "skill.remove"
    capability = "admin"
    returns = str
    skill: str


class SkillReset(Syscall[tuple[str, ...]]):
    """Put aside what hides a skill that comes with Operant (empty: all of them); return which were put aside."""

    call = "skill.reset"
    capability = "admin"
    returns = tuple[str, ...]
    skill: str = ""


class SkillValidate(Syscall[tuple[Finding, ...]]):
    """Return what is wrong with the folder of a skill by the letter of the standard."""

    call = "skill.validate"
    capability = "admin"
    returns = tuple[Finding, ...]
    path: str


class ServiceInfo(Record):
    """The service of a skill: what runs, what it asks for, what the owner let it have.

    `state`: `ungranted` (nobody has allowed this content), `stopped` by the owner, `waiting` for its next try,
    `starting`, `running`, `degraded` (it runs, `reason` says what is wrong), `failed` (it is not tried again).
    `digest` is of the skill's folder as it is, `running` of the one that runs. `hooks` is where it hooks, `declares`
    where it may (nothing: anywhere). `wants` are capabilities, `network` and `secrets` what it may reach and read;
    `since` is in microseconds.
    """

    name: str
    skill: str
    state: Literal["ungranted", "stopped", "waiting", "starting", "running", "degraded", "failed"]
    path: str = ""
    agent: str = ""
    digest: str = ""
    running: str = ""
    command: str = ""
    generation: int = 0
    pid: int = 0
    since: int = 0
    restarts: int = 0
    hooks: tuple[str, ...] = ()
    declares: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    sandbox: bool = True
    reason: str = ""


class ServiceList(Syscall[tuple[ServiceInfo, ...]]):
    """List the services of skills, by name."""

    call = "service.list"
    capability = "agent.read"
    returns = tuple[ServiceInfo, ...]


class ServiceGrant(Syscall[ServiceInfo]):
    """Let a service run with what it asks for, as long as its folder has this content (empty: as it is now)."""

    call = "service.grant"
    capability = "admin"
    returns = ServiceInfo
    service: str
    digest: str = ""


class ServiceRevoke(Syscall[ServiceInfo]):
    """Take back what a service may do; it ends."""

    call = "service.revoke"
    capability = "admin"
    returns = ServiceInfo
    service: str


class ServiceLogs(Syscall[tuple[str, ...]]):
    """Return the last lines that a service wrote."""

    call = "service.logs"
    capability = "admin"
    returns = tuple[str, ...]
    service: str
    lines: int = 200


class SkillStart(Syscall[ServiceInfo]):
    """Start the service of a skill, also one that failed."""

    call = "skill.start"
    capability = "admin"
    returns = ServiceInfo
    skill: str


class SkillStop(Syscall[ServiceInfo]):
    """Stop the service of a skill until `skill.start`; a guard that is stopped guards nothing."""

    call = "skill.stop"
    capability = "admin"
    returns = ServiceInfo
    skill: str


class SkillReload(Syscall[tuple[ServiceInfo, ...]]):
    """Look at the folders again, and start the service of a skill anew (empty: none)."""

    call = "skill.reload"
    capability = "admin"
    returns = tuple[ServiceInfo, ...]
    skill: str = ""


class ToolList(Syscall[tuple[ToolSpec, ...]]):
    """List the tools that an agent may use (empty: all tools)."""

    call = "tool.list"
    capability = "tool.read"
    returns = tuple[ToolSpec, ...]
    agent: str = ""


class ToolInvoke(Syscall[ToolResult]):
    """Run a tool through the gate, on record in a session (empty: one for such calls)."""

    call = "tool.invoke"
    capability = "tool.invoke"
    returns = ToolResult
    name: str
    arguments: Json
    agent: str = ""
    session: str = ""


# ---------------------------------------------------------------------------- servers of others (MCP)


class McpTool(Record):
    """A tool of a server: `name` is what agents call it, `tool` its own name.

    `state`: `offered`; `new` or `changed` since the owner's approval, and so not offered; `refused`, which `why` says.
    """

    name: str
    tool: str
    state: Literal["offered", "new", "changed", "refused"] = "offered"
    why: str = ""
    description: str = ""


class McpServer(Record):
    """A server as it stands; `where` is its command or address, `source` the file that names it."""

    name: str
    kind: Literal["stdio", "http"] = "stdio"
    where: str = ""
    source: str = ""
    state: Literal["off", "waiting", "connected", "failed"] = "waiting"
    sentence: str = ""
    protocol: str = ""
    version: str = ""
    tools: tuple[McpTool, ...] = ()
    left_out: int = 0
    resources: int = 0
    prompts: int = 0
    login: bool = False
    """Whether a login by a person is kept of it."""


class McpList(Syscall[tuple[McpServer, ...]]):
    """List the MCP servers that the configuration names, as they stand."""

    call = "mcp.list"
    capability = "tool.read"
    returns = tuple[McpServer, ...]


class McpTest(Syscall[McpServer]):
    """Connect to an MCP server anew and return what it has. Raises `Unavailable` saying why it cannot be used."""

    call = "mcp.test"
    capability = "admin"
    returns = McpServer
    server: str


class McpAdd(Syscall[McpServer]):
    """Write a server into `mcp.json` of the home, in the shape of `mcpServers`, and use it from now on."""

    call = "mcp.add"
    capability = "admin"
    returns = McpServer
    server: str
    settings: Json


class McpRemove(Syscall[None]):
    """Take a server out of `mcp.json`, with what was approved of it."""

    call = "mcp.remove"
    capability = "admin"
    returns = None
    server: str


class McpApprove(Syscall[tuple[str, ...]]):
    """Approve what a server's tools (or the one named) say now; return those that are offered by it."""

    call = "mcp.approve"
    capability = "admin"
    returns = tuple[str, ...]
    server: str
    tool: str = ""


class McpLogin(Syscall[str]):
    """Begin a login to an MCP server; return the address for a browser, or nothing where the server wants no login.

    `redirect` is where the browser comes back to: `http://127.0.0.1:PORT/…`, or https. `mcp.callback` ends it.
    """

    call = "mcp.login"
    capability = "admin"
    returns = str
    server: str
    redirect: str


class McpCallback(Syscall[McpServer]):
    """End a login with the whole `address` that the browser was sent back to; return the server, connected."""

    call = "mcp.callback"
    capability = "admin"
    returns = McpServer
    server: str
    address: str


class McpLogout(Syscall[bool]):
    """Forget the login to an MCP server; tell whether there was one."""

    call = "mcp.logout"
    capability = "admin"
    returns = bool
    server: str


# ---------------------------------------------------------------------------- messages and approvals


class Queued(Record):
    """A message on its way."""

    outbox_id: str


class MessageSend(Syscall[Queued]):
    """Send a person a message, from a session, to an address (default: where the session is)."""

    call = "message.send"
    capability = "message.send"
    returns = Queued
    session: str
    parts: tuple[Part, ...]
    address: Address | None = None


class MessageList(Syscall[tuple[OutboxItem, ...]]):
    """List messages that are on their way, or the dead letters."""

    call = "message.list"
    capability = "session.read"
    returns = tuple[OutboxItem, ...]
    dead: bool = False
    session: str = ""


class MessageRequeue(Syscall[OutboxItem]):
    """Try a dead letter again."""

    call = "message.requeue"
    capability = "message.send"
    returns = OutboxItem
    outbox_id: str


class Traced(Record):
    """Where an accepted message stands: its item, the events of its turn, and the replies.

    `state`: `waiting`, `working`, `asking`, `answered`, `delivered`, `failed`, `rejected`.
    """

    state: str
    sentence: str
    item: InboxItem
    events: tuple[Event, ...] = ()
    replies: tuple[OutboxItem, ...] = ()


class MessageTrace(Syscall[Traced]):
    """Explain what became of an accepted message."""

    call = "message.trace"
    capability = "session.read"
    returns = Traced
    inbox_id: str


class Approval(Record):
    """A question that waits for a person."""

    approval_id: str
    session: str
    agent: str
    name: str
    arguments: Json
    question: str
    asked: int
    expires: int
    call_id: str = ""


class ApprovalList(Syscall[tuple[Approval, ...]]):
    """List the questions that wait for a person."""

    call = "approval.list"
    capability = "approval.read"
    returns = tuple[Approval, ...]
    session: str = ""


class ApprovalAnswer(Syscall[Approval]):
    """Answer a question; `session` lets the same tool with the same arguments pass for the rest of the session."""

    call = "approval.answer"
    capability = "approval.answer"
    returns = Approval
    approval_id: str
    answer: Literal["allow", "deny"]
    scope: Literal["once", "session"] = "once"
    reason: str = ""


# ---------------------------------------------------------------------------- messages between agents

A2aKind = Literal["silent", "notify", "wake"]


class A2aMessage(Record):
    """A message from one agent to another; times are in microseconds.

    `sent` says that nothing is owed. A `wake` is `open` until it is `answered`, and `late` from its deadline on.
    """

    id: str
    kind: A2aKind
    sender: str
    to: str
    session: str
    sender_session: str = ""
    state: Literal["sent", "open", "answered", "late"] = "sent"
    sent: int = 0
    deadline: int = 0
    text: str = ""
    answer: str = ""
    hops: int = 0


class A2aSend(Syscall[A2aMessage]):
    """Send an agent a message: `silent` is put on record, `notify` starts a turn, `wake` is owed an answer as well.

    `to` is an agent, or `agent@peer` in another home; `session` is one of its sessions (empty: one of its own for this
    sender). `sender` is the session that sends, by its agent; the answer comes into it. Only the owner may name one.
    """

    call = "a2a.send"
    capability = "session.dispatch"
    returns = A2aMessage
    text: str
    to: str = ""
    kind: A2aKind = "wake"
    session: str = ""
    sender: str = ""
    minutes: float = 0.0


class A2aList(Syscall[tuple[A2aMessage, ...]]):
    """List messages between agents, the last sent first: all, those of a session, or one by its id.

    With `wait_s` one that is named and owed an answer is told when it has come, or after so many seconds, 60 at most.
    """

    call = "a2a.list"
    capability = "session.read"
    returns = tuple[A2aMessage, ...]
    id: str = ""
    session: str = ""
    open: bool = False
    limit: int = 50
    wait_s: float = 0.0


# ---------------------------------------------------------------------------- values, blobs, kernel


class KvGet(Syscall[str | None]):
    """Return a value, or null."""

    call = "kv.get"
    capability = "kv.read"
    returns = str | None
    namespace: str
    key: str


class KvSet(Syscall[None]):
    """Set a value; `ttl_s` seconds from now it is gone (0: never)."""

    call = "kv.set"
    capability = "kv.write"
    returns = None
    namespace: str
    key: str
    value: str
    ttl_s: float = 0.0


class KvDelete(Syscall[None]):
    """Delete a value."""

    call = "kv.delete"
    capability = "kv.write"
    returns = None
    namespace: str
    key: str


class KvList(Syscall[dict[str, str]]):
    """List values by key."""

    call = "kv.list"
    capability = "kv.read"
    returns = dict[str, str]
    namespace: str
    prefix: str = ""


class BlobGet(Syscall[str]):
    """Return a blob's bytes from `offset`, as text with what is not UTF-8 replaced."""

    call = "blob.get"
    capability = "session.read"
    returns = str
    digest: str
    offset: int = 0
    limit: int = 16_000


class BlobPut(Syscall[BlobRef]):
    """Keep text, or bytes as base64, as a blob."""

    call = "blob.put"
    capability = "session.dispatch"
    returns = BlobRef
    text: str
    media_type: str = "text/plain"
    name: str = ""
    encoding: Literal["utf-8", "base64"] = "utf-8"


class Status(Record):
    """How the system is."""

    version: str
    ready: bool
    accepting: bool
    reason: str = ""
    hint: str = ""
    sessions_open: int = 0
    turns: int = 0
    extensions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    damages: tuple[Damage, ...] = ()
    dropped: dict[str, int] = {}
    problems: tuple[str, ...] = ()
    pid: int = 0
    started: int = 0


class KernelStatus(Syscall[Status]):
    """Tell how the system is."""

    call = "kernel.status"
    capability = "kernel.read"
    returns = Status


class Check(Record):
    """One thing that `kernel.examine` looked at, and what to do about it."""

    name: str
    state: Literal["ok", "warn", "fail"]
    text: str
    hint: str = ""


class KernelExamine(Syscall[tuple[Check, ...]]):
    """Look at everything, from the disk up; `full` reads every event and every blob."""

    call = "kernel.examine"
    capability = "kernel.read"
    returns = tuple[Check, ...]
    full: bool = False


class LogLine(Record):
    """One line of the system's own log; `at` is in microseconds."""

    at: int = 0
    level: str = ""
    part: str = ""
    message: str = ""
    traceback: str = ""


class LogTail(Syscall[tuple[LogLine, ...]]):
    """Return the end of the log, oldest first."""

    call = "log.tail"
    capability = "admin"
    returns = tuple[LogLine, ...]
    lines: int = 200


class TokenInfo(Record):
    """A token of somebody who may connect, without the token itself; times are in microseconds, 0 for never.

    `kind`: `token` for a program, `browser` for one that came by a login link.
    """

    name: str
    kind: Literal["token", "browser"] = "token"
    scopes: tuple[str, ...] = ()
    created: int = 0
    expires: int = 0
    used: int = 0


class TokenMade(Record):
    """A new token; this is the only time that it can be read."""

    token: str
    info: TokenInfo


class TokenAdd(Syscall[TokenMade]):
    """Make a token under a name; `days` from now it is void (0: never)."""

    call = "token.add"
    capability = "admin"
    returns = TokenMade
    name: str
    scopes: tuple[str, ...] = ("chat",)
    days: int = 0


class TokenList(Syscall[tuple[TokenInfo, ...]]):
    """List the tokens."""

    call = "token.list"
    capability = "admin"
    returns = tuple[TokenInfo, ...]


class TokenRevoke(Syscall[TokenInfo]):
    """Make a token void at once."""

    call = "token.revoke"
    capability = "admin"
    returns = TokenInfo
    name: str


class LoginOpen(Syscall[str]):
    """Return the address of the web page with a code in it that logs one browser in, once, within ten minutes."""

    call = "login.open"
    capability = "admin"
    returns = str


class StoreCheck(Syscall[tuple[Finding, ...]]):
    """Look the store over; `full` reads every event and every blob."""

    call = "store.check"
    capability = "kernel.read"
    returns = tuple[Finding, ...]
    full: bool = False


class KernelShutdown(Syscall[None]):
    """Stop: accept nothing more, let turns end for a while, close. What is open goes on at the next start."""

    call = "kernel.shutdown"
    capability = "admin"
    returns = None


class KernelRestart(Syscall[None]):
    """Ask whoever runs the system to stop it and start it again; `dry`: only find out whether somebody would.

    Raises `Refused` where nobody would start it again.
    """

    call = "kernel.restart"
    returns = None
    dry: bool = False


# ---------------------------------------------------------------------------- the table

Handler = Callable[[Principal, Any], Awaitable[Any]]


def allowed(principal: Principal, capability: str) -> bool:
    """Tell whether a principal has a capability; `session.*` stands for all that begin so."""
    held = principal.capabilities
    return "admin" in held or capability in held or f"{capability.partition('.')[0]}.*" in held


class Syscalls:
    """Find, check and carry out calls."""

    def __init__(self) -> None:
        self._handlers: dict[str, tuple[type[Syscall[Any]], Handler]] = {}

    def register(self, call: type[Syscall[R]], handler: Callable[[Principal, Any], Awaitable[R]]) -> None:
        """Add a call. Raises `Conflict` when its name is taken."""
        if call.call in self._handlers:
            raise Conflict(f"The syscall {call.call} is registered twice.")
        self._handlers[call.call] = (call, handler)

    @property
    def table(self) -> dict[str, type[Syscall[Any]]]:
        """Return all calls by name."""
        return {name: call for name, (call, _) in sorted(self._handlers.items())}

    async def __call__(self, principal: Principal, call: Syscall[R]) -> R:
        """Carry out a call. Raises `Denied` naming the capability that the caller lacks."""
        if not allowed(principal, call.capability):
            raise Denied(f"{principal.kind} {principal.id} may not call {call.call}.", f"It needs {call.capability!r}.")
        if call.call not in self._handlers:
            raise NotFound(f"There is no syscall {call.call}.", "Is the extension that brings it enabled?")
        return await self._handlers[call.call][1](principal, call)

    def decode(self, name: str, params: Any) -> Syscall[Any]:
        """Make a call of what came over a wire. Raises `NotFound` or `Invalid`."""
        if name not in self._handlers:
            raise NotFound(f"There is no syscall {name}.")
        try:
            return msgspec.convert(params or {}, self._handlers[name][0])
        except msgspec.ValidationError as error:
            raise Invalid(f"The parameters of {name} do not fit: {error}.") from error
