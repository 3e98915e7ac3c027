"""What a client may send over the WebSocket of a session."""

from __future__ import annotations

from typing import Literal

from operant.sdk import BlobRef, Record

Modes = Literal["bounded", "deep_work"]


class Said(Record, tag_field="type", tag="message"):
    """A message; `id` is the client's own, by which it is taken once, also when it is sent again."""

    content: str = ""
    id: str = ""
    mode: Modes | None = None
    agent: str = ""
    model: str = ""
    attachments: tuple[BlobRef, ...] = ()


class SetMode(Record, tag_field="type", tag="set_mode"):
    """The mode of this window's messages from now on."""

    mode: Modes


class Clear(Record, tag_field="type", tag="clear"):
    """Begin the session anew; a copy of its history goes to the archive."""


class Ping(Record, tag_field="type", tag="ping"):
    """Ask whether anybody is there."""


class ApprovalResponse(Record, tag_field="type", tag="approval_response"):
    """Answer a question about a call."""

    approved: bool
    tool_call_id: str = ""
    approval_id: str = ""
    scope: Literal["once", "session"] = "once"
    reason: str = ""


class ApprovePlan(Record, tag_field="type", tag="approve_plan"):
    """Let a plan be carried out."""

    feedback: str = ""


class RevisePlan(Record, tag_field="type", tag="revise_plan"):
    """Ask for another plan."""

    feedback: str = ""


class StopTurn(Record, tag_field="type", tag="stop"):
    """Stop the running turn; with `turn`, only if that one is still running."""

    turn: str = ""


class Resume(Record, tag_field="type", tag="resume"):
    """Show again what came after a seq, then what is new."""

    seq: int


Incoming = Said | SetMode | Clear | Ping | ApprovalResponse | ApprovePlan | RevisePlan | StopTurn | Resume
INCOMING = Incoming
