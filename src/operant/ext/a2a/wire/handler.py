"""The operations of A2A 1.0 over our log. Nothing is kept here: every answer is read off a history."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.events import Event as WireEvent
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict
from msgspec import ValidationError, convert, structs

from operant.ext.a2a.incoming import Caller, Extra, Incoming, Said
from operant.ext.a2a.letter import EXTENSION, Letter
from operant.ext.a2a.standing import Standing, Standings
from operant.ext.a2a.wire.listed import Page, page_of
from operant.ext.a2a.wire.shapes import STATES, Shapes
from operant.sdk import (
    ApprovalAnswer,
    ApprovalAsked,
    Client,
    Event,
    Invalid,
    MessageReceived,
    ModelReplied,
    OperantError,
    SessionStop,
    TurnEnded,
    TurnStarted,
)
from operant.sdk import ApprovalAnswered as Answered

_TELLING = (TurnStarted, TurnEnded, ModelReplied, ApprovalAsked, Answered, MessageReceived)
_YES = frozenset({"yes", "y", "allow", "approve", "ok"})
_NO = frozenset({"no", "n", "deny", "refuse", "reject"})


class Tasks(RequestHandler):
    """Serve the tasks of one caller with one agent; who that is stands in the call's context."""

    def __init__(
        self, incoming: Incoming, standings: Standings, shapes: Shapes, us: Client, them: Callable[[Caller], Client]
    ) -> None:
        self._incoming = incoming
        self._standings = standings
        self._shapes = shapes
        self._us = us
        self._them = them

    # ------------------------------------------------------------------ messages

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """Take a message in; wait until its task rests, unless it shall return immediately."""
        validate_proto_required_fields(params)
        letter = await self._taken(params, _caller(context))
        history = _history(params.configuration)
        if params.configuration.return_immediately:
            return await self._shapes.task(await self._standings.of(letter), history)
        standing = await self._rested(letter)
        return await self._shapes.task(standing, history)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[WireEvent]:
        """Take a message in and tell how its task goes on."""
        validate_proto_required_fields(params)
        letter = await self._taken(params, _caller(context))
        async for event in self._told(letter):
            yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[WireEvent]:
        """Tell how a task goes on; one that is over has nothing more to tell."""
        validate_proto_required_fields(params)
        letter = await self._own(params.id, _caller(context))
        if (await self._standings.of(letter)).final:
            raise UnsupportedOperationError("This task is over.")
        async for event in self._told(letter):
            yield event

    # ------------------------------------------------------------------ tasks

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """Return a task."""
        validate_proto_required_fields(params)
        letter = await self._own(params.id, _caller(context))
        return await self._shapes.task(await self._standings.of(letter), _history(params))

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List the caller's tasks, the last changed first."""
        history = _history(params)
        page = Page.read(params)
        letters = [one for one in await self._incoming.all(_caller(context)) if page.wants(one)]
        standings = [await self._standings.of(one) for one in letters]
        wanted = [one for one in standings if not params.status or STATES[one.state] == params.status]
        shown, token, total = page_of(wanted, page)
        tasks = [await self._shapes.task(one, history or 0, artifacts=params.include_artifacts) for one in shown]
        return ListTasksResponse(tasks=tasks, next_page_token=token, page_size=page.size, total_size=total)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """Stop a task that is at work, and return it as it has ended."""
        validate_proto_required_fields(params)
        letter = await self._own(params.id, _caller(context))
        standing = await self._standings.of(letter)
        if standing.final:
            raise TaskNotCancelableError(f"The task is {standing.state}.")
        stopped = await self._us.call(SessionStop(session=letter.session, turn=standing.turn))
        if not stopped.stopped:
            raise TaskNotCancelableError("The task has not begun, or waits for another agent.")
        async with aclosing(self._changes(letter)) as changes:
            async for standing in changes:
                if standing.final:
                    break
        return await self._shapes.task(standing)

    # ------------------------------------------------------------------ what is not offered

    async def on_get_extended_agent_card(self, params: Any, context: ServerCallContext) -> AgentCard:
        """Say that there is one card for all."""
        raise UnsupportedOperationError("There is no extended card.")

    async def on_create_task_push_notification_config(self, params: Any, context: ServerCallContext) -> Any:
        """Say that we call nobody: what a client names would be an address inside our network."""
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(self, params: Any, context: ServerCallContext) -> Any:
        """Say that we call nobody."""
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(self, params: Any, context: ServerCallContext) -> Any:
        """Say that we call nobody."""
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(self, params: Any, context: ServerCallContext) -> None:
        """Say that we call nobody."""
        raise PushNotificationNotSupportedError

    # ------------------------------------------------------------------ inside

    async def _own(self, id: str, caller: Caller) -> Letter:
        letter = await self._incoming.of(caller, id)
        if letter is None:
            raise TaskNotFoundError(f"There is no task {id!r}.")
        return letter

    async def _taken(self, params: SendMessageRequest, caller: Caller) -> Letter:
        """Return the task of a message: a new one, or the one that it adds to or answers."""
        try:
            return await self._take(params, caller)
        except Invalid as error:
            raise InvalidParamsError(error.line()) from error
        except OperantError as error:
            raise UnsupportedOperationError(error.line()) from error

    async def _take(self, params: SendMessageRequest, caller: Caller) -> Letter:
        message = params.message
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError
        task = await self._own(message.task_id, caller) if message.task_id else None
        if task is not None and message.context_id and message.context_id != task.context:
            raise InvalidParamsError("The task is in another context.")
        text, blobs = await self._shapes.said(message)
        said = Said(text=text, blobs=blobs, message_id=message.message_id, context=message.context_id)
        if task is None:
            return await self._incoming.take(caller, _extended(said, message))
        standing = await self._standings.of(task)
        if standing.final:
            raise UnsupportedOperationError(f"The task is {standing.state}; send a message without it to go on.")
        if standing.approval:
            await self._answer(standing, caller, text)
        else:
            await self._incoming.take(caller, said, task)
        return task

    async def _answer(self, standing: Standing, caller: Caller, text: str) -> None:
        """Take words for a yes or a no; whether the caller may say it is asked where it counts.

        Anything else changes nothing: the task goes on asking.
        """
        first = (text.lower().split() or [""])[0].strip(".,!:;")
        if first not in _YES | _NO:
            return
        await self._them(caller).call(
            ApprovalAnswer(approval_id=standing.approval, answer="allow" if first in _YES else "deny", reason=text)
        )

    async def _rested(self, letter: Letter) -> Standing:
        async with aclosing(self._changes(letter)) as changes:
            async for standing in changes:
                if standing.rests:
                    return standing
        raise UnsupportedOperationError("The task has gone.")

    async def _told(self, letter: Letter) -> AsyncGenerator[WireEvent]:
        """Yield the task, then what changes, until it is over."""
        first = True
        async with aclosing(self._changes(letter)) as changes:
            async for standing in changes:
                if first:
                    yield await self._shapes.task(standing)
                    first = False
                    continue
                if standing.answer:
                    artifact = await self._shapes.artifact(standing)
                    yield TaskArtifactUpdateEvent(
                        task_id=letter.id, context_id=letter.context, artifact=artifact, last_chunk=True
                    )
                status = self._shapes.status(standing)
                yield TaskStatusUpdateEvent(task_id=letter.id, context_id=letter.context, status=status)

    async def _changes(self, letter: Letter) -> AsyncGenerator[Standing]:
        """Yield how a task stands, again after each event that changes it, until it is over.

        It is read as it stood at each event, so that everybody who follows a task is told the same in the same order.
        """
        seq = await self._standings.seq(letter)
        standing = await self._standings.of(letter, seq)
        yield standing
        if standing.final:
            return
        async with aclosing(self._us.follow(letter.session, after=seq)) as seen:
            telling = (one async for one in seen if isinstance(one, Event) and isinstance(one.body, _TELLING))
            async for event in telling:
                now = await self._standings.of(letter, event.seq)
                if now.mark != standing.mark:
                    standing = now
                    yield standing
                if standing.final:
                    return


def _caller(context: ServerCallContext) -> Caller:
    caller: Caller = context.state["caller"]
    return caller


def _history(params: Any) -> int | None:
    """Return how many messages are wanted; None for all."""
    if not params.HasField("history_length"):
        return None
    if params.history_length < 0:
        raise InvalidParamsError("historyLength cannot be negative.")
    return int(params.history_length)


def _extended(said: Said, message: Message) -> Said:
    """Add what another home of ours says about its message."""
    more = MessageToDict(message.metadata).get(EXTENSION)
    if not isinstance(more, dict):
        return said
    try:
        extra = convert(more, Extra)
    except ValidationError as error:
        raise InvalidParamsError(f"The metadata of {EXTENSION} do not fit: {error}.") from error
    return structs.replace(said, kind=extra.kind, chain=extra.chain, labels=extra.labels)
