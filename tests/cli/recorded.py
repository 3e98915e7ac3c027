"""Events as a kernel records them, for tests of what is drawn from them."""

from __future__ import annotations

import json

from operant.kernel.records import (
    Address,
    ApprovalAnswered,
    ApprovalAsked,
    BlobRef,
    Body,
    ContextOpened,
    Delta,
    Event,
    MessageDelivered,
    MessageQueued,
    MessageReceived,
    ModelReplied,
    Text,
    ToolCall,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
)

HERE = Address(channel="local", chat="s")


class Recorder:
    """Make events of one session, a tenth of a second apart."""

    def __init__(self, turn: str = "t1") -> None:
        self.turn = turn
        self.events: list[Event] = []
        self.at = 1_790_000_000_000_000

    def add(self, *bodies: Body, after_s: float = 0.1) -> list[Event]:
        """Record bodies."""
        made: list[Event] = []
        for body in bodies:
            self.at += int(after_s * 1_000_000)
            seq = len(self.events) + 1
            event = Event(session="s", seq=seq, id=f"e{seq}", type=body.type, at=self.at, body=body, turn=self.turn)
            self.events.append(event)
            made.append(event)
        return made

    def text(self, words: str) -> Delta:
        """Make a delta."""
        return Delta(session="s", turn=self.turn, kind="text", text=words)


def received(text: str, external_id: str = "") -> MessageReceived:
    """Make a person's message."""
    return MessageReceived(
        parts=(Text(text=text),), author="owner", inbox_id="in", external_id=external_id, address=HERE
    )


def replied(text: str = "", *calls: ToolCall, usage: Usage | None = None) -> ModelReplied:
    """Make a model's reply."""
    parts = ((Text(text=text),) if text else ()) + calls
    used = usage or Usage(input=1000, cached=600, output=50, calls=1, usd=0.002)
    return ModelReplied(
        parts=parts, model="scripted/m", provider="scripted", usage=used, latency_ms=80, first_token_ms=20
    )


def shell(command: str, call_id: str = "c1") -> ToolCall:
    """Make a call of the shell."""
    return ToolCall(id=call_id, name="shell", arguments=json.dumps({"command": command}))


def queued(text: str) -> MessageQueued:
    """Make a reply on its way."""
    return MessageQueued(outbox_id="out", parts=(Text(text=text),), address=HERE)


def opened(system: str = "s1", tools: str = "t1", reason: str = "") -> ContextOpened:
    """Make a context's beginning."""
    return ContextOpened(system=BlobRef(digest=system, size=1), tools=BlobRef(digest=tools, size=1), reason=reason)


def working_turn() -> list[Event]:
    """Record a turn that asks, runs a tool, and answers."""
    recorder = Recorder()
    recorder.add(received("what changed?"), TurnStarted(), opened())
    recorder.add(replied("I look.", shell("git status")))
    asked = ApprovalAsked(
        approval_id="a1",
        call_id="c1",
        name="shell",
        arguments={"command": "git status"},
        digest="d",
        question="Run it?",
    )
    recorder.add(asked)
    recorder.add(ApprovalAnswered(approval_id="a1", call_id="c1", answer="allow", by="owner"), after_s=12)
    recorder.add(ToolStarted(call_id="c1", name="shell", arguments={"command": "git status"}))
    recorder.add(
        ToolEnded(call_id="c1", name="shell", outcome="ok", parts=(Text(text="clean"),), duration_ms=200), after_s=0.2
    )
    recorder.add(replied("Nothing changed."))
    recorder.add(
        queued("Nothing changed."), MessageDelivered(outbox_id="out"), TurnEnded(reason="done", steps=2), after_s=0
    )
    return recorder.events
