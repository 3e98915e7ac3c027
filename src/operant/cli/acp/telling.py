"""Turn what a session says into the updates that an editor shows."""

from __future__ import annotations

from acp import (
    plan_entry,
    start_tool_call,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.helpers import SessionUpdate
from acp.schema import PlanEntryStatus, ToolCallStatus, ToolCallUpdate

from operant.cli.acp.acts import act, fenced, in_full, words
from operant.cli.acp.others import foreign
from operant.cli.acp.prompt import said
from operant.cli.calls import asked_for, parsed
from operant.kernel.records import (
    ApprovalAnswered,
    ApprovalAsked,
    Body,
    ContextCompacted,
    Delta,
    Event,
    Json,
    MessageFailed,
    MessageQueued,
    MessageReceived,
    ModelReplied,
    Reasoning,
    TaskChanged,
    ToolCall,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    text_of,
)
from operant.kernel.syscalls import Approval

_STATES: dict[str, PlanEntryStatus] = {"active": "in_progress", "done": "completed"}
_TAIL = 4_000
_SHOWN = 20_000
"""Characters of a tool's output that an editor is given."""


class Telling:
    """Take events and deltas of one session in order; `mine` are external ids of messages that the editor shows."""

    def __init__(self, workspace: str) -> None:
        self.workspace = workspace
        self.mine: set[str] = set()
        self._turn = ""
        self._open = False
        self._deaf = False
        self._flowed = ""  # of the step that arrives
        self._thought = False
        self._break = False
        self._told = ""  # the last whole reply, to know it again when it is queued
        self._sent = ""  # the last queued message, which a turn's end may repeat
        self._calls: dict[str, ToolCall] = {}
        self._announced: dict[str, Json] = {}
        self._tails: dict[str, str] = {}
        self._tasks: dict[str, TaskChanged] = {}

    def join(self) -> None:
        """Begin to take deltas; those of a step that began before are told when it is whole."""
        self._deaf = self._open

    def see(self, seen: Event | Delta) -> list[SessionUpdate]:
        """Return what the editor is to show of it."""
        if isinstance(seen, Delta):
            return [] if self._deaf and seen.kind in ("text", "reasoning") else self._delta(seen)
        if isinstance(seen.body, TurnStarted | MessageReceived):
            self._turn = seen.turn or self._turn
        self._open = not isinstance(seen.body, TurnEnded) and (self._open or isinstance(seen.body, TurnStarted))
        if not isinstance(seen.body, Body):
            return []
        return self._event(seen.body) or self._work(seen.body)

    def _event(self, body: Body) -> list[SessionUpdate]:
        match body:
            case MessageReceived():
                return self._received(body)
            case TurnStarted(trigger="resume"):
                self._flowed = ""
                return self._note("taken up again where it stopped")
            case ModelReplied(purpose="turn"):
                return self._replied(body)
            case MessageQueued():
                return self._queued(body)
            case MessageFailed():
                return self._note(f"This could not be delivered: {body.error}")
            case ContextCompacted():
                return self._note("earlier turns are sent in a shorter form from here on")
            case TurnEnded():
                return self._ended_turn(body)
            case _:
                return []

    def _work(self, body: Body) -> list[SessionUpdate]:
        match body:
            case ApprovalAsked():
                return self._asked(body)
            case ApprovalAnswered() if foreign(body.call_id):
                return self._answered(body)
            case ToolStarted():
                return self._started(body)
            case ToolEnded():
                return self._ended(body)
            case TaskChanged():
                return self._planned(body)
            case _:
                return []

    # ------------------------------------------------------------------ words

    def _delta(self, delta: Delta) -> list[SessionUpdate]:
        if delta.turn and self._turn and delta.turn != self._turn:
            return []  # the end of a turn that is over
        match delta.kind:
            case "text":
                self._flowed += delta.text
                return self._say(delta.text)
            case "reasoning":
                self._thought = True
                return [update_agent_thought_text(delta.text)]
            case "tool":
                return self._output(delta)
            case "notice":
                return self._note(delta.text)
            case "restart":
                return self._restarted(delta.text)

    def _say(self, text: str) -> list[SessionUpdate]:
        if not text:
            return []
        gap, self._break = "\n\n" if self._break else "", False
        return [update_agent_message_text(gap + text)]

    def _note(self, text: str) -> list[SessionUpdate]:
        """Say something that is not part of the answer."""
        self._break = self._break or bool(self._flowed)
        said = self._say(f"*{text}*")
        self._break = True
        return said

    def _restarted(self, why: str) -> list[SessionUpdate]:
        again = f"trying again: {why}" if why else "trying again"
        note = self._note(f"{again} (what is above of this answer no longer counts)" if self._flowed else again)
        self._flowed, self._deaf = "", False
        return note

    def _received(self, body: MessageReceived) -> list[SessionUpdate]:
        self._break = False
        if body.external_id and body.external_id in self.mine:
            self.mine.discard(body.external_id)
            return []
        text = said(body.parts)
        return [update_user_message_text(text)] if text else []

    def _replied(self, body: ModelReplied) -> list[SessionUpdate]:
        """Say what the deltas have not: they may have been dropped, and a hook may have rewritten the reply."""
        self._calls |= {part.id: part for part in body.parts if isinstance(part, ToolCall)}
        text = text_of(body.parts)
        updates: list[SessionUpdate] = []
        if not self._thought:
            thoughts = "".join(part.text for part in body.parts if isinstance(part, Reasoning))
            updates += [update_agent_thought_text(thoughts)] if thoughts else []
        if text.startswith(self._flowed):
            updates += self._say(text[len(self._flowed) :])
        else:
            updates += [*self._note("the answer changed; this is what counts:"), *self._say(text)]
        self._flowed, self._thought, self._deaf, self._told = "", False, False, text
        self._break = self._break or bool(text)
        return updates

    def _queued(self, body: MessageQueued) -> list[SessionUpdate]:
        text = text_of(body.parts)
        told, self._told, self._sent = self._told.strip(), "", text
        if text.strip() == told:
            return []
        if told and text.startswith(told):
            text = text[len(told) :]
        return self._whole(text)

    def _ended_turn(self, body: TurnEnded) -> list[SessionUpdate]:
        self._flowed, self._thought, self._deaf = "", False, False
        self._tails.clear()
        return [] if body.sentence in ("", self._sent) else self._whole(body.sentence)

    def _whole(self, text: str) -> list[SessionUpdate]:
        said = self._say(text.strip())
        self._break = True
        return said

    # ------------------------------------------------------------------ tools and tasks

    def _announce(self, call_id: str, name: str, arguments: Json, status: ToolCallStatus) -> SessionUpdate:
        """Tell of a call once, and afterwards only how it stands."""
        self._break = False
        if call_id in self._announced:
            return update_tool_call(call_id, status=status)
        call = self._calls.get(call_id)
        wanted = asked_for(arguments, call.arguments) if call else arguments
        self._announced[call_id] = wanted
        shown = act(name, wanted, self.workspace)
        return start_tool_call(
            call_id,
            shown.title,
            kind=shown.kind,
            status=status,
            content=shown.content or None,
            locations=shown.locations or None,
            raw_input=wanted,
        )

    def _asked(self, body: ApprovalAsked) -> list[SessionUpdate]:
        return [self._announce(body.call_id, body.name, body.arguments, "pending")]

    def _answered(self, body: ApprovalAnswered) -> list[SessionUpdate]:
        """End what stands for a sub-agent's question; its call goes on in a session of its own."""
        if self._announced.pop(body.call_id, None) is None:
            return []
        return [update_tool_call(body.call_id, status="completed" if body.answer == "allow" else "failed")]

    def _started(self, body: ToolStarted) -> list[SessionUpdate]:
        return [self._announce(body.call_id, body.name, body.arguments, "in_progress")]

    def _output(self, delta: Delta) -> list[SessionUpdate]:
        if delta.call_id not in self._announced:
            return []
        tail = (self._tails.get(delta.call_id, "") + delta.text)[-_TAIL:]
        self._tails[delta.call_id] = tail
        return [update_tool_call(delta.call_id, content=[words(fenced(tail))])]

    def _ended(self, body: ToolEnded) -> list[SessionUpdate]:
        call = self._calls.pop(body.call_id, None)
        name = body.name or (call.name if call else "tool")
        updates: list[SessionUpdate] = []
        if body.call_id not in self._announced:
            updates.append(self._announce(body.call_id, name, parsed(call.arguments) if call else {}, "pending"))
        self._tails.pop(body.call_id, None)
        arguments = self._announced.pop(body.call_id)
        good = body.outcome == "ok"
        text = text_of(body.parts)
        shown = act(name, arguments, self.workspace).content if good else []
        if not shown and text:
            shown = [words(fenced(text[:_SHOWN]))]
        raw = {"outcome": body.outcome, "text": text[:_SHOWN]}
        ended = update_tool_call(
            body.call_id, status="completed" if good else "failed", content=shown or None, raw_output=raw
        )
        return [*updates, ended]

    def _planned(self, body: TaskChanged) -> list[SessionUpdate]:
        self._tasks[body.id] = body
        shown = [task for task in self._tasks.values() if task.state != "dropped"]
        return [update_plan(plan_entry(_titled(task), status=_STATES.get(task.state, "pending")) for task in shown)]

    def question(self, asked: Approval) -> ToolCallUpdate:
        """Return the call that a person is asked about, with everything that is to be decided on."""
        shown = act(asked.name, asked.arguments, self.workspace)
        return ToolCallUpdate(
            tool_call_id=asked.call_id,
            title=shown.title,
            kind=shown.kind,
            status="pending",
            content=[in_full(asked.arguments, asked.question), *shown.content],
            locations=shown.locations or None,
            raw_input=asked.arguments,
        )


def _titled(task: TaskChanged) -> str:
    title = task.title or task.id
    if task.state != "failed":
        return title
    return f"{title} (failed: {task.note})" if task.note else f"{title} (failed)"
