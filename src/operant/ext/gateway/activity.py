"""What goes on, over all sessions: live, and as far back as the store remembers."""

from __future__ import annotations

from operant.ext.gateway.frames import usage_of
from operant.ext.gateway.sessions import moment
from operant.sdk import (
    ApprovalAnswered,
    ApprovalAsked,
    Client,
    Event,
    Json,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    SessionHistory,
    SessionList,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    text_of,
)

_PREVIEW = 200
_SESSIONS = 30
_EVENTS = 300
"""Events of one session that are looked at, at most."""


def activity(event: Event) -> Json | None:
    """Say what an event means to somebody who watches everything; None: nothing."""
    made = _of(event)
    if made is None:
        return None
    return {**made, "session_id": event.session, "seq": event.seq, "turn": event.turn, "at": event.at,
            "timestamp": moment(event.at)}  # fmt: skip


def _of(event: Event) -> Json | None:
    body = event.body
    if isinstance(body, ToolStarted):
        return {"type": "tool_call", "tool": body.name, "input": body.arguments, "tool_call_id": body.call_id}
    if isinstance(body, ToolEnded):
        return {"type": "tool_result", "tool": body.name, "duration_ms": round(body.duration_ms, 3),
                "success": body.outcome == "ok", "outcome": body.outcome, "tool_call_id": body.call_id,
                "result_preview": text_of(body.parts)[:_PREVIEW]}  # fmt: skip
    if isinstance(body, ModelReplied):
        return {"type": "model_reply", "model": body.model, "duration_ms": body.latency_ms, "purpose": body.purpose,
                "usage": usage_of(body.usage)}  # fmt: skip
    if isinstance(body, ModelFailed):
        return {
            "type": "model_error",
            "model": body.model,
            "error": body.error,
            "message": body.sentence,
            "then": body.then,
        }
    return _turn(body)


def _turn(body: object) -> Json | None:
    if isinstance(body, MessageReceived):
        return {"type": "message", "author": body.author, "preview": text_of(body.parts)[:_PREVIEW]}
    if isinstance(body, TurnStarted):
        return {"type": "turn_started", "trigger": body.trigger, "mode": body.mode}
    if isinstance(body, TurnEnded):
        return {"type": "turn_ended", "reason": body.reason, "steps": body.steps, "message": body.sentence,
                "usage": usage_of(body.usage)}  # fmt: skip
    if isinstance(body, ApprovalAsked):
        return {"type": "approval_request", "tool": body.name, "input": body.arguments, "approval_id": body.approval_id,
                "tool_call_id": body.call_id, "question": body.question}  # fmt: skip
    if isinstance(body, ApprovalAnswered):
        return {"type": "approval_resolved", "approval_id": body.approval_id, "approved": body.answer == "allow",
                "tool_call_id": body.call_id, "by": body.by}  # fmt: skip
    return None


async def lately(client: Client, limit: int, since: int = 0) -> tuple[Json, ...]:
    """Return the last things that went on, oldest first, those from a time in microseconds on."""
    found: list[Event] = []
    most = _EVENTS if since else min(_EVENTS, 2 * limit)
    for info in await client.call(SessionList(limit=_SESSIONS)):
        if info.updated < since:
            break
        after = max(0, info.events - most)
        found.extend(await client.call(SessionHistory(session=info.key, after=after)))
    found.sort(key=lambda event: (event.at, event.session, event.seq))
    made = [one for event in found if event.at >= since and (one := activity(event))]
    return tuple(made[-limit:])
