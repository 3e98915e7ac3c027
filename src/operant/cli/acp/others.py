"""Questions of sub-agents: they stand as notes in the session of the person whom all is for."""

from __future__ import annotations

import msgspec

from operant.cli.chat.story import ASKS_FOR_OTHERS
from operant.kernel.records import ApprovalAnswered, ApprovalAsked, Event, Json, Note
from operant.kernel.syscalls import Approval

_MARK = "question:"
_KINDS: dict[str, type[ApprovalAsked] | type[ApprovalAnswered]] = {
    "approval.asked": ApprovalAsked,
    "approval.answered": ApprovalAnswered,
}


def plain(event: Event) -> Event:
    """Return an event with a sub-agent's question, or its end, as if it were one of the session itself.

    Nobody else can make a note look like a question.
    """
    if not isinstance(event.body, Note) or event.actor != ASKS_FOR_OTHERS or event.body.kind not in _KINDS:
        return event
    call_id = f"{_MARK}{event.body.data.get('approval_id', '')}"
    data: Json = {"digest": "", **event.body.data, "call_id": call_id}
    try:
        return msgspec.structs.replace(event, body=msgspec.convert(data, _KINDS[event.body.kind]))
    except msgspec.ValidationError:
        return event  # a note of another version


def foreign(call_id: str) -> bool:
    """Tell whether a call is one of a sub-agent."""
    return call_id.startswith(_MARK)


def approval(event: Event, body: ApprovalAsked) -> Approval:
    """Return a question as it waits for its answer."""
    return Approval(
        approval_id=body.approval_id,
        session=event.session,
        agent="",
        name=body.name,
        arguments=body.arguments,
        question=body.question,
        asked=event.at,
        expires=body.expires,
        call_id=body.call_id,
    )
