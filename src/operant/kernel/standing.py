"""Where a session's open turn stands, by the log alone. A turn decides from this and from nothing else."""

from __future__ import annotations

import hashlib

import msgspec

from operant.kernel.points import Progress
from operant.kernel.records import (
    Address,
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Json,
    MessageReceived,
    Mode,
    ModelFailed,
    ModelReplied,
    ToolCall,
    ToolEnded,
    ToolStarted,
    Trigger,
    TurnEnded,
    TurnStarted,
    Usage,
)

_canonical = msgspec.json.Encoder(order="deterministic")

MALFORMED = "malformed"
"""Label of a tool's end whose arguments were no arguments; counted to stop a model that cannot get them right."""


def digest_of(name: str, arguments: Json) -> str:
    """Name exactly this call: the same tool with the same arguments, whatever their order."""
    return hashlib.sha256(name.encode() + b"\0" + _canonical.encode(arguments)).hexdigest()


class Standing:
    """Fold events into the state of the turn; `apply` must see every event of the session in order."""

    def __init__(self) -> None:
        self.allowed: set[str] = set()
        self.address: Address | None = None
        self.reply_to = ""
        self.author = ""
        self._questions: dict[str, ApprovalAsked] = {}
        self._begin("", TurnStarted(), 0)

    def _begin(self, turn: str, body: TurnStarted, at: int) -> None:
        self.turn = turn
        self.trigger: Trigger = body.trigger
        self.mode: Mode = body.mode
        self.started = at
        self.steps = 0
        self.usage = Usage()
        self.resumed = 0
        self.stuck_since = 0
        self.repeated = 0
        self.malformed = 0
        self.calls: dict[str, ToolCall] = {}
        self.running: dict[str, ToolStarted] = {}
        self.reply: ModelReplied | None = None
        self.refused: dict[str, ApprovalAnswered] = {}
        self._last_calls: tuple[tuple[str, str], ...] = ()

    @property
    def open(self) -> bool:
        """Tell whether a turn has begun and not ended."""
        return bool(self.turn)

    @property
    def questions(self) -> tuple[ApprovalAsked, ...]:
        """Return what waits for a person."""
        return tuple(self._questions.values())

    def question(self, call_id: str) -> ApprovalAsked | None:
        """Return the open question about a call."""
        return next((asked for asked in self._questions.values() if asked.call_id == call_id), None)

    def progress(self) -> Progress:
        """Say how far the turn has come."""
        return Progress(
            turn=self.turn,
            trigger=self.trigger,
            mode=self.mode,
            author=self.author,
            started=self.started,
            steps=self.steps,
            usage=self.usage,
            repeated=self.repeated,
            malformed=self.malformed,
            resumed=self.resumed,
        )

    def apply(self, event: Event) -> None:
        """Take one more event into account."""
        match event.body:
            case MessageReceived() as body:
                self.address = body.address or self.address
                self.reply_to = body.external_id
                self.author = body.author
                self.reply = None
            case TurnStarted() as body:
                self._started(event, body)
            case TurnEnded():
                self._begin("", TurnStarted(), 0)
                self._questions.clear()
            case ModelReplied() | ModelFailed():
                self._count(event.body)
            case ToolStarted() as body if body.call_id in self.calls:
                self.running[body.call_id] = body
            case ToolEnded() as body:
                self._ended(body)
            case ApprovalAsked() as body:
                self._questions[body.approval_id] = body
            case ApprovalAnswered() as body:
                self._answered(body)
            case _:
                return

    def _started(self, event: Event, body: TurnStarted) -> None:
        if event.turn != self.turn:
            self._begin(event.turn, body, event.at)
            return
        self.stuck_since = self.stuck_since if self.resumed else event.at
        self.resumed += 1

    def _count(self, body: ModelReplied | ModelFailed) -> None:
        self.usage += body.usage
        if isinstance(body, ModelFailed) or body.purpose != "turn":
            return
        self.steps += 1
        self.resumed = 0
        calls = [part for part in body.parts if isinstance(part, ToolCall)]
        signature = tuple((call.name, call.arguments) for call in calls)
        self.repeated = self.repeated + 1 if signature and signature == self._last_calls else 0
        self._last_calls = signature
        self.calls = {call.id: call for call in calls}
        self.running.clear()
        self.reply = None if calls else body

    def _ended(self, body: ToolEnded) -> None:
        if self.calls.pop(body.call_id, None) is None:
            return
        self.running.pop(body.call_id, None)
        self.resumed = 0
        self.malformed = self.malformed + 1 if MALFORMED in body.labels else 0

    def _answered(self, body: ApprovalAnswered) -> None:
        asked = self._questions.pop(body.approval_id, None)
        if asked is None:
            return
        if body.answer == "deny":
            self.refused[body.call_id] = body
        else:
            self.allowed.add(asked.digest if body.scope == "session" else f"{body.call_id}:{asked.digest}")
