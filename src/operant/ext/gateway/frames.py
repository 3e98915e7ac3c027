"""What a history looks like on the wire: the frames of the protocol, made of events and deltas.

One event makes one frame or two; the last one of an event has no `more`. A client that remembers the `seq` of the
last frame without `more` can go on from there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from operant.sdk import (
    ApprovalAnswered,
    ApprovalAsked,
    Body,
    ContextCompacted,
    Delta,
    Event,
    Json,
    MessageQueued,
    MessageReceived,
    Mode,
    ModelFailed,
    ModelReplied,
    Note,
    TaskChanged,
    ToolCall,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
    text_of,
)

ASKS_FOR_OTHERS = "extension:subagents"
"""Whose notes are questions: nobody else can make one look like something that it is not."""
PREVIEW = 500
MODES = {"chat": "bounded", "deep": "deep_work"}
KINDS: dict[str, Mode] = {"bounded": "chat", "deep_work": "deep", "chat": "chat", "deep": "deep"}


def usage_of(usage: Usage) -> Json:
    """Say usage with the names that clients know, and ours."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "api_calls": usage.calls,
        "cached_tokens": usage.cached,
        "reasoning_tokens": usage.reasoning,
        "usd": usage.usd,
    }


def delta_frame(delta: Delta) -> Json:
    """Say what streams; nothing of it is an event."""
    if delta.kind in ("text", "reasoning"):
        return {"type": f"{delta.kind}_delta", "text": delta.text, "turn": delta.turn}
    if delta.kind == "tool":
        return {"type": "tool_output", "tool_call_id": delta.call_id, "text": delta.text, "turn": delta.turn}
    return {"type": delta.kind, "text": delta.text, "turn": delta.turn}


def event_frame(event: Event) -> Json:
    """Say an event as it is."""
    return {"type": "event", "seq": event.seq, "event": event}


class Framer:
    """Make the frames of one session; it knows where in a turn it is."""

    def __init__(self) -> None:
        self.mode = "bounded"
        self._iteration = 0
        self._open: set[str] = set()
        self._tasks: dict[str, TaskChanged] = {}
        self._names: dict[str, str] = {}
        self._model = ""
        self._text = ""

    def frames(self, event: Event) -> list[Json]:
        """Return an event's frames; the first ones say that there are more."""
        body = event.body
        if not isinstance(body, Body) or (isinstance(body, Note) and event.actor != ASKS_FOR_OTHERS):
            return []
        make: Any = getattr(self, f"_{event.type.replace('.', '_')}", None)
        made: list[Json] = make(body) if make else []
        last = len(made) - 1
        return [
            {**frame, "seq": event.seq, "turn": event.turn, "at": event.at, **({"more": True} if place < last else {})}
            for place, frame in enumerate(made)
        ]

    def _message_received(self, body: MessageReceived) -> list[Json]:
        return [{"type": "message", "role": "user", "content": text_of(body.parts), "parts": body.parts,
                 "author": body.author, "inbox_id": body.inbox_id, "id": body.external_id}]  # fmt: skip

    def _turn_started(self, body: TurnStarted) -> list[Json]:
        if body.trigger != "resume":
            self._iteration = 0
            self._text = ""
        self.mode = MODES[body.mode]
        self._iteration += 1
        return [self._thinking()]

    def _model_replied(self, body: ModelReplied) -> list[Json]:
        if body.purpose != "turn":
            return []
        self._model = body.model
        self._open = {part.id for part in body.parts if isinstance(part, ToolCall)}
        made: list[Json] = [{**self._thinking(), "phase": "llm_response", "response_tokens": body.usage.output,
                             "model": body.model, "usage": usage_of(body.usage)}]  # fmt: skip
        text = text_of(body.parts)
        if text.strip():
            made.append({"type": "text", "text": text, "final": not self._open})
        return made

    def _model_failed(self, body: ModelFailed) -> list[Json]:
        return [{"type": "notice", "text": f"{body.model}: {body.sentence}", "then": body.then}]

    def _tool_started(self, body: ToolStarted) -> list[Json]:
        self._names[body.call_id] = body.name
        return [{"type": "tool_call", "tool": body.name, "input": body.arguments, "tool_call_id": body.call_id,
                 "effect": body.effect}]  # fmt: skip

    def _tool_ended(self, body: ToolEnded) -> list[Json]:
        text = text_of(body.parts)
        made: list[Json] = [{
            "type": "tool_result", "tool": body.name or self._names.get(body.call_id, ""), "tool_call_id": body.call_id,
            "result_preview": text[:PREVIEW], "result_length": len(text), "duration_ms": round(body.duration_ms, 3),
            "success": body.outcome == "ok", "outcome": body.outcome, "artifacts": body.artifacts,
        }]  # fmt: skip
        self._open.discard(body.call_id)
        if not self._open:
            self._iteration += 1
            made.append(self._thinking())
        return made

    def _task_changed(self, body: TaskChanged) -> list[Json]:
        self._tasks[body.id] = body
        return [{"type": "task_update", **tasks_of(self._tasks)}]

    def _approval_asked(self, body: ApprovalAsked) -> list[Json]:
        return [{"type": "approval_request", "tool": body.name, "input": body.arguments, "tool_call_id": body.call_id,
                 "approval_id": body.approval_id, "question": body.question, "expires": body.expires}]  # fmt: skip

    def _approval_answered(self, body: ApprovalAnswered) -> list[Json]:
        return [{"type": "approval_resolved", "tool_call_id": body.call_id, "tool": self._names.get(body.call_id, ""),
                 "approved": body.answer == "allow", "reason": body.reason or body.answer, "by": body.by,
                 "approval_id": body.approval_id}]  # fmt: skip

    def _note(self, body: Note) -> list[Json]:
        """Show the questions of sub-agents, which are on record in sessions of their own."""
        try:
            if body.kind == "approval.asked":
                return self._approval_asked(msgspec.convert({"call_id": "", "digest": "", **body.data}, ApprovalAsked))
            if body.kind == "approval.answered":
                return self._approval_answered(msgspec.convert({"call_id": "", **body.data}, ApprovalAnswered))
        except msgspec.ValidationError:
            return []  # a note of another version
        return []

    def _context_compacted(self, body: ContextCompacted) -> list[Json]:
        return [{"type": "notice", "text": f"The context was shortened ({body.strategy}).", "then": ""}]

    def _message_queued(self, body: MessageQueued) -> list[Json]:
        self._text = text_of(body.parts)
        return [{"type": "message", "role": "assistant", "content": self._text, "parts": body.parts}]

    def _turn_ended(self, body: TurnEnded) -> list[Json]:
        made: list[Json] = [{"type": "error", "message": body.sentence}] if body.reason == "error" else []
        done = {
            "type": "done",
            "text": self._text or body.sentence,
            "iterations": body.steps,
            "finish_reason": body.reason,
            "model": self._model,
            "usage": usage_of(body.usage),
            "mode": self.mode,
        }
        return [*made, done]

    def _thinking(self) -> Json:
        return {"type": "thinking", "iteration": max(1, self._iteration)}


def tasks_of(tasks: dict[str, TaskChanged]) -> Json:
    """Say a task tree: the tasks in the order in which they came, and a summary in one line."""
    shown = [
        {"id": one.id, "title": one.title, "status": one.state, "parent": one.parent or None,
         "depends_on": one.depends_on, "note": one.note}
        for one in tasks.values()
    ]  # fmt: skip
    done = sum(one.state == "done" for one in tasks.values())
    summary = f"{done} of {len(tasks)} done" if tasks else ""
    return {"tasks": shown, "summary": summary}
