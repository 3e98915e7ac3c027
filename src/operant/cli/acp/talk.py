"""One session of an editor: its prompts on their way, its questions, and what happens in it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from acp import RequestError, update_agent_message_text
from acp.helpers import ContentBlock, SessionUpdate
from acp.interfaces import Client as Editor
from acp.schema import AllowedOutcome, PermissionOption, RequestPermissionResponse, StopReason

from operant.cli.acp.others import approval, foreign, plain
from operant.cli.acp.prompt import note, parts_of
from operant.cli.acp.telling import Telling
from operant.kernel.errors import OperantError, Unavailable
from operant.kernel.records import ApprovalAnswered, ApprovalAsked, Delta, Event, MessageReceived, TurnEnded
from operant.kernel.syscalls import Approval, ApprovalAnswer, ApprovalList, SessionDispatch, SessionHistory, SessionStop
from operant.kit.clock import SystemClock
from operant.kit.ids import SystemIds
from operant.sdk.client import Client

_PAGE = 200
_ONCE, _SESSION, _NO = "once", "session", "no"
_OPTIONS = (
    PermissionOption(option_id=_ONCE, name="Allow", kind="allow_once"),
    PermissionOption(option_id=_SESSION, name="Allow exactly this for the whole session", kind="allow_always"),
    PermissionOption(option_id=_NO, name="Reject", kind="reject_once"),
)
_REASONS: dict[str, StopReason] = {
    "done": "end_turn",
    "stopped": "cancelled",
    "max_steps": "max_turn_requests",
    "budget": "max_tokens",
    "rejected": "refusal",
}

_log = logging.getLogger("operant.editor")


@dataclass
class _Prompt:
    """A prompt that has no answer yet; `turn` is empty until it is in the history."""

    done: asyncio.Future[TurnEnded]
    turn: str = ""
    cancelled: bool = False


class Talk:
    """Follow a session for an editor, hand prompts to it, and ask what it asks.

    `aside` goes to the model with the next prompt, `word` to the person.
    """

    def __init__(self, client: Client, editor: Editor, group: asyncio.TaskGroup, key: str, workspace: str) -> None:
        self.key = key
        self.aside = ""
        self.word = ""
        self._client = client
        self._editor = editor
        self._group = group
        self._telling = Telling(workspace)
        self._seq = 0
        self._ids = SystemIds(SystemClock().now)
        self._prompts: dict[str, _Prompt] = {}
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._others: dict[str, Approval] = {}
        self._following: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ what was, and what happens

    async def read(self, *, show: bool) -> None:
        """Read the history so far, and show all of it to the editor where it has not got it itself."""
        while events := await self._page():
            for event in map(plain, events):
                self._seq = event.seq
                self._keep(event)
                updates = self._telling.see(event)
                for update in updates if show else ():
                    await self._show(update)
        self._telling.join()

    async def attend(self) -> None:
        """Show what happens from here on, and ask what waits for an answer."""
        self._follow_on()
        waiting = await self._client.call(ApprovalList())
        for one in waiting:
            if one.session == self.key or one.approval_id in self._others:
                self._question(self._others.get(one.approval_id, one))

    def leave(self) -> None:
        """Follow no longer; what runs goes on."""
        for task in (self._following, *self._questions.values()):
            if task is not None:
                task.cancel()

    async def _page(self) -> tuple[Event, ...]:
        return await self._client.call(SessionHistory(session=self.key, after=self._seq, limit=_PAGE))

    def _follow_on(self) -> None:
        if self._following is None or self._following.done():
            self._following = self._group.create_task(self._follow())

    async def _follow(self) -> None:
        ended: OperantError = Unavailable("The system stopped before the turn ended.", "It goes on at the next start.")
        try:
            async with aclosing(self._client.follow(self.key, self._seq)) as seen:
                async for one in seen:
                    await self._take(one)
        except OperantError as error:
            ended = error
        except ConnectionError:
            _log.info("the editor went away")
        for prompt in self._prompts.values():
            if not prompt.done.done():
                prompt.done.set_exception(ended)

    async def _take(self, taken: Event | Delta) -> None:
        seen = plain(taken) if isinstance(taken, Event) else taken
        for update in self._telling.see(seen):
            await self._show(update)
        if not isinstance(seen, Event):
            return
        self._seq = seen.seq
        match seen.body:
            case MessageReceived() as body if body.external_id in self._prompts:
                await self._received(self._prompts[body.external_id], seen.turn)
            case ApprovalAsked() as body:
                self._keep(seen)
                self._question(approval(seen, body))
            case ApprovalAnswered() as body:
                self._keep(seen)
                self._answered(body.approval_id)
            case TurnEnded() as body:
                self._ended(seen.turn, body)
            case _:
                return

    def _keep(self, event: Event) -> None:
        """Keep what sub-agents ask as long as it waits: their turns are not those of this session."""
        body = event.body
        if isinstance(body, ApprovalAsked) and foreign(body.call_id):
            self._others[body.approval_id] = approval(event, body)
        elif isinstance(body, ApprovalAnswered):
            self._others.pop(body.approval_id, None)

    async def _received(self, prompt: _Prompt, turn: str) -> None:
        prompt.turn = turn
        if prompt.cancelled:
            await self._client.call(SessionStop(session=self.key, turn=turn))

    def _ended(self, turn: str, body: TurnEnded) -> None:
        for approval_id in self._questions.keys() - self._others.keys():
            self._answered(approval_id)
        for prompt in self._prompts.values():
            if prompt.turn == turn and not prompt.done.done():
                prompt.done.set_result(body)

    async def _show(self, update: SessionUpdate) -> None:
        await self._editor.session_update(session_id=self.key, update=update)

    # ------------------------------------------------------------------ prompts

    async def prompt(self, blocks: Sequence[ContentBlock]) -> tuple[StopReason, TurnEnded]:
        """Send a prompt and wait for its turn's end. Raises `RequestError` when the turn failed."""
        external_id = self._ids.new()
        prompt = _Prompt(asyncio.get_running_loop().create_future())
        self._prompts[external_id] = prompt
        self._telling.mine.add(external_id)
        self._follow_on()
        try:
            parts = await parts_of(self._client, blocks)
            await self._tell_word()
            aside, self.aside = self.aside, ""
            extra = (note(aside),) if aside else ()
            await self._client.call(SessionDispatch(session=self.key, parts=(*parts, *extra), external_id=external_id))
            ended = await prompt.done
        finally:
            del self._prompts[external_id]
        if ended.reason == "error":
            raise RequestError(-32603, ended.sentence or "The turn failed.")
        return "cancelled" if prompt.cancelled else _REASONS[ended.reason], ended

    async def cancel(self) -> None:
        """Stop what runs; a prompt that is not taken up yet is stopped when it is."""
        turns: set[str] = set()
        for prompt in self._prompts.values():
            prompt.cancelled = True
            turns.add(prompt.turn)
        for turn in turns or {""}:
            if turn or not self._prompts:
                await self._client.call(SessionStop(session=self.key, turn=turn))

    async def _tell_word(self) -> None:
        word, self.word = self.word, ""
        if word:
            await self._show(update_agent_message_text(f"*{word}*\n\n"))

    # ------------------------------------------------------------------ questions

    def _question(self, asked: Approval) -> None:
        if asked.approval_id not in self._questions:
            self._questions[asked.approval_id] = self._group.create_task(self._ask(asked))

    def _answered(self, approval_id: str) -> None:
        """Wait no longer for an answer that was given here or elsewhere."""
        task = self._questions.pop(approval_id, None)
        if task is not None:
            task.cancel()

    async def _ask(self, asked: Approval) -> None:
        call = self._telling.question(asked)
        try:
            given = await self._editor.request_permission(session_id=self.key, tool_call=call, options=[*_OPTIONS])
        except (RequestError, ConnectionError, ValueError) as error:
            _log.warning("the editor cannot ask: %s; operant approval list has the question", error)
            return
        self._questions.pop(asked.approval_id, None)  # from here on nobody takes it back: an answer is given whole
        answer, scope = _read(given)
        if not answer and any(prompt.cancelled for prompt in self._prompts.values()):
            return  # stopping the turn takes the question back
        call_answer = ApprovalAnswer(
            approval_id=asked.approval_id,
            answer=answer or "deny",
            scope=scope,
            reason="" if answer else "dismissed in the editor",
        )
        try:
            await self._client.call(call_answer)
        except OperantError as error:
            _log.info("an answer came too late: %s", error.line())


def _read(given: RequestPermissionResponse) -> tuple[Literal["allow", "deny", ""], Literal["once", "session"]]:
    """Return the answer, empty when the question was dismissed; what is not known is no yes."""
    if not isinstance(given.outcome, AllowedOutcome):
        return "", "once"
    chosen = given.outcome.option_id
    return "allow" if chosen in (_ONCE, _SESSION) else "deny", "session" if chosen == _SESSION else "once"
