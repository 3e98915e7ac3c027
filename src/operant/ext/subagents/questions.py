"""Questions of sub-agents, before the person whose turn it is."""

from __future__ import annotations

from operant.ext.subagents.roster import Child, Roster
from operant.sdk import ApprovalAnswered, ApprovalAsked, Happened, Host, MessageSend, SessionAppend, SessionGet, Text

ASKED = "approval.asked"
ANSWERED = "approval.answered"
_LOCAL, _PAGE = "local", "http"
"""Channels whose readers follow the history."""


class Questions:
    """Put each question on record in the session of the person, and send it where that person is."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self._host = host
        self._roster = roster

    async def asked(self, input: Happened) -> None:
        """Pass a question on."""
        child, body = await self._roster.get(input.event.session), input.event.body
        if child is None or not isinstance(body, ApprovalAsked):
            return
        question = body.question or f"{child.agent} wants to use {body.name}."
        data = {
            "approval_id": body.approval_id,
            "name": body.name,
            "arguments": body.arguments,
            "question": question,
            "session": child.session,
            "expires": body.expires,
        }
        await self._host.call(SessionAppend(session=child.root, kind=ASKED, text=question, data=data))
        await self._send(child, f"{question}\nTo answer: operant approval allow {body.approval_id} (or deny)")

    async def answered(self, input: Happened) -> None:
        """Say that a question is settled."""
        child, body = await self._roster.get(input.event.session), input.event.body
        if child is None or not isinstance(body, ApprovalAnswered):
            return
        data = {"approval_id": body.approval_id, "answer": body.answer, "by": body.by, "reason": body.reason}
        await self._host.call(SessionAppend(session=child.root, kind=ANSWERED, data=data))

    async def _send(self, child: Child, text: str) -> None:
        """Send it to a channel; who follows the history itself has seen it there."""
        info = await self._host.call(SessionGet(session=child.root))
        if info.channel not in ("", _LOCAL, _PAGE):
            await self._host.call(MessageSend(session=child.root, parts=(Text(text=text),)))
