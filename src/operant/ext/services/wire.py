# shape: table
"""The wire `svc/1`: every message between a service and Operant. The JSON Schemas of the docs are made of this.

JSON-RPC 2.0, one message a line, UTF-8, `LONGEST` bytes at most. Both sides ask and answer. The service speaks first:
`register`. A request of a service may say `within`, the id of the request that it is answering meanwhile.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from operant.kit.jsonrpc import Fault
from operant.sdk import Json, Record

PROTOCOL = "svc/1"
LONGEST = 1 << 20
HEARTBEAT_S = 10.0
SLOWEST_S = 30.0
MOST = 100
"""Hooks, tools, commands or events that one service may have."""

Name = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}(?!\\n)$")]


class Message(msgspec.Struct, frozen=True):
    """Any message as it is read: a request has `method` and `id`, a notification no `id`, an answer no `method`."""

    id: int | str | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw | UnsetType = UNSET
    error: Fault | None = None
    within: int | str | None = None


# ------------------------------------------------------------------ the service speaks


class HookWanted(Record, forbid_unknown_fields=True):
    """A hook point that the service answers at; an empty `fail` is `closed` for gates and `open` for the others."""

    point: str
    phase: Literal["mutate", "validate"] = "mutate"
    priority: Annotated[int, Meta(ge=-900, le=900)] = 0
    timeout_s: Annotated[float, Meta(gt=0, le=SLOWEST_S)] = 5.0
    fail: Literal["closed", "open", ""] = ""
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


class ToolOffered(Record, forbid_unknown_fields=True):
    """A tool that models may use; `schema` is the JSON Schema of its arguments."""

    name: Name
    description: Annotated[str, Meta(min_length=1, max_length=2_000)]
    schema: Json = {}
    effect: Literal["read", "idempotent", "external"] = "external"
    timeout_s: Annotated[float, Meta(gt=0, le=3_600)] = 60.0
    deferred: bool = True


class CommandOffered(Record, forbid_unknown_fields=True):
    """A command for the shell of agents."""

    name: Name
    description: Annotated[str, Meta(max_length=200)] = ""


class Register(Record, forbid_unknown_fields=True):
    """`register`, the first message of a service; `token` is in its environment and good for once."""

    protocol: str
    token: str
    name: str = ""
    hooks: Annotated[tuple[HookWanted, ...], Meta(max_length=MOST)] = ()
    tools: Annotated[tuple[ToolOffered, ...], Meta(max_length=MOST)] = ()
    commands: Annotated[tuple[CommandOffered, ...], Meta(max_length=MOST)] = ()
    events: Annotated[tuple[str, ...], Meta(max_length=MOST)] = ()
    grants: tuple[str, ...] = ()


class Limits(Record):
    """What the service is held to."""

    message_bytes: int = LONGEST
    handler_s: float = SLOWEST_S
    heartbeat_s: float = HEARTBEAT_S


class Registered(Record):
    """The answer to `register`."""

    service: str
    generation: int
    protocol: str = PROTOCOL
    limits: Limits = Limits()
    configuration: dict[str, str] = {}
    granted: tuple[str, ...] = ()


class Said(Record):
    """`log`, a notification: a line for the log of the service."""

    text: str
    level: Literal["debug", "info", "warning", "error"] = "info"


class ProgressMade(Record):
    """`progress`, a notification: more output of the tool that is being run under the request `id`."""

    id: int | str
    text: str


class Cancel(Record):
    """`cancel`, a notification, both ways: the answer to the request `id` is not waited for any more."""

    id: int | str


# ------------------------------------------------------------------ Operant speaks


class HookCall(Record):
    """`hook`: `input` is fixed, `output` is what may be changed; see the table of hook points for their fields."""

    point: str
    input: Any
    output: Any = None


class Lent(Record):
    """Stands for an `input` that is too long for one message: JSON of `size` bytes, read with `service.blob`."""

    blob: str
    size: int


class HookAnswer(Record, forbid_unknown_fields=True):
    """The answer to `hook`: null lets pass; fields of `output` that are left out stay as they are."""

    verdict: Literal["", "allow", "reject", "ask"] = ""
    reason: str = ""
    question: str = ""
    output: Json | None = None


class Caller(Record):
    """Where a call comes from; `key` is the same when the same call is made again."""

    call_id: str = ""
    session: str = ""
    turn: str = ""
    agent: str = ""
    key: str = ""
    repeated: bool = False


class ToolCalled(Record):
    """`tool`: use one."""

    name: str
    arguments: Json
    call: Caller


class ToolAnswer(Record, forbid_unknown_fields=True):
    """The answer to `tool`."""

    text: str
    outcome: Literal["ok", "error"] = "ok"


class CommandCalled(Record):
    """`command`: somebody typed it in a shell; `input` is what stood on its standard input."""

    name: str
    arguments: tuple[str, ...]
    input: str = ""
    call: Caller = Caller()


class CommandAnswer(Record, forbid_unknown_fields=True):
    """The answer to `command`."""

    output: str = ""
    error: str = ""
    code: Annotated[int, Meta(ge=0, le=255)] = 0


class Told(Record):
    """`event`, a notification: something happened."""

    point: str
    input: Any


class TimerDue(Record):
    """`timer`: it is time; answered when it is dealt with, until then it is told again after a restart."""

    name: str
    data: str = ""
    due: int = 0


class Configured(Record):
    """`config`: the configuration has changed."""

    configuration: dict[str, str]


class Shutdown(Record):
    """`shutdown`: end within so many seconds."""

    reason: str = ""
    within_s: float = 5.0


ASKED: dict[str, tuple[type[Record], type[Record] | None]] = {
    "register": (Register, Registered),
    "hook": (HookCall, HookAnswer),
    "tool": (ToolCalled, ToolAnswer),
    "command": (CommandCalled, CommandAnswer),
    "timer": (TimerDue, None),
    "config": (Configured, None),
    "ping": (Record, None),
}
"""Requests with their answers: the service asks `register` and any syscall, Operant asks the rest."""

TOLD: dict[str, type[Record]] = {
    "log": Said,
    "progress": ProgressMade,
    "cancel": Cancel,
    "event": Told,
    "shutdown": Shutdown,
}
"""Notifications."""
