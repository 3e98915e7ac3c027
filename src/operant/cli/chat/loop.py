"""The chat itself: one session is followed and shown while lines come in. How it looks is the screen's business."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from operant.cli.chat.pieces import Notice, Piece, Question, Said
from operant.cli.chat.question import HELP, Answer, read_answer
from operant.cli.chat.recap import READ, recap
from operant.cli.chat.story import Story
from operant.kernel.errors import NotFound, OperantError
from operant.kernel.records import Event, SessionInfo, Text
from operant.kernel.syscalls import (
    ApprovalAnswer,
    ApprovalList,
    SessionDispatch,
    SessionGet,
    SessionHistory,
    SessionOpen,
    SessionStop,
)
from operant.kit.clock import SystemClock
from operant.kit.ids import SystemIds
from operant.sdk.client import Client


class Screen(Protocol):
    """Where a chat is shown."""

    async def show(self, pieces: Sequence[Piece]) -> None:
        """Show finished pieces for good."""
        ...

    def changed(self) -> None:
        """Draw the live end anew."""
        ...


Commands = Callable[["Chat", str], Awaitable[None]]
"""Carry out a line that begins with `/`."""


class Chat:
    """Follow a session, show it, and hand lines to it."""

    def __init__(self, client: Client, screen: Screen, agent: str = "", commands: Commands | None = None) -> None:
        self.client = client
        self.screen = screen
        self.agent = agent
        self.key = ""
        self.left = asyncio.Event()
        self.broken = False
        self.idle = asyncio.Event()
        self.busy = asyncio.Event()
        self.settled = asyncio.Event()
        self._clock = SystemClock()
        self._ids = SystemIds(self._clock.now)
        self.story = Story(self._clock.monotonic)
        self._group = asyncio.TaskGroup()
        self._commands = commands
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Chat:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *reason: object) -> None:
        if self._following is not None:
            self._following.cancel()
        await self._group.__aexit__(*reason)  # type: ignore[arg-type]  # it takes what it is given by `async with`

    # ------------------------------------------------------------------ sessions

    async def enter(self, key: str = "", agent: str = "", *, quiet: bool = False) -> SessionInfo:
        """Go to a session, made when it is new (an empty key makes one), and show where it stands unless `quiet`."""
        try:
            info = await self.client.call(SessionGet(session=key)) if key else None
        except NotFound:
            info = None
        if info is None:
            info = await self.client.call(SessionOpen(session=key, agent=agent or self.agent))
        if self._following is not None:
            self._following.cancel()
        self.key = info.key
        self.story = Story(self._clock.monotonic)
        events = await self.client.call(SessionHistory(session=info.key, after=max(info.events - READ, 0)))
        pieces = recap(events, self.story)
        if not quiet:
            await self.screen.show(pieces)
        await self._show_questions()
        self._note()
        self._following = self._group.create_task(self._follow(self.key, self.story))
        return info

    async def _show_questions(self) -> None:
        """Show what waits for an answer from before the events that were read back."""
        for asked in await self.client.call(ApprovalList(session=self.key)):
            if asked.approval_id not in self.story.questions:
                question = Question(asked.approval_id, asked.name, asked.arguments, asked.question)
                self.story.questions[asked.approval_id] = question
                await self.screen.show([question])

    async def _follow(self, key: str, story: Story) -> None:
        try:
            async for seen in self.client.follow(key, story.seq):
                pieces = story.see(seen)
                if pieces:
                    await self.screen.show(pieces)
                if isinstance(seen, Event):
                    self._note()
                self.screen.changed()
        except OperantError as error:
            self.broken = True
            await self.say(error.line(), bad=True)
            self._release()

    def _release(self) -> None:
        """End the chat, and every wait for what will not come any more."""
        for event in (self.left, self.idle, self.settled):
            event.set()

    def _note(self) -> None:
        """Let those who wait know whether a turn is open and whether a question is."""
        busy = self.story.busy
        _turn(self.busy, on=busy)
        _turn(self.idle, on=not busy)
        _turn(self.settled, on=not busy or bool(self.story.questions))

    # ------------------------------------------------------------------ what a person does

    async def take(self, line: str) -> None:
        """Carry out one line: a command, an answer, or a message."""
        text = line.strip()
        if not text:
            return
        try:
            if self._commands is not None and text.startswith("/") and not text.startswith("//"):
                await self._commands(self, text)
            elif self.question is not None:
                await self._answer(text)
            else:
                await self.send(line.removeprefix("/") if text.startswith("//") else line)
        except OperantError as error:
            await self.say(error.line(), bad=True)

    @property
    def question(self) -> Question | None:
        """Return the question that is to be answered next."""
        return next(iter(self.story.questions.values()), None)

    async def _answer(self, text: str) -> None:
        answer = read_answer(text)
        if answer is None:
            await self.say(f"Please answer the question first: {HELP}.")
            return
        question = self.question
        if question is not None:
            await self.answer(question, answer)

    async def answer(self, question: Question, answer: Answer) -> None:
        """Give an answer."""
        call = ApprovalAnswer(
            approval_id=question.approval_id, answer=answer.answer, scope=answer.scope, reason=answer.reason
        )
        await self.client.call(call)
        self.story.close(question.approval_id)
        self._note()

    async def send(self, text: str) -> None:
        """Dispatch a message."""
        steering = bool(self.story.turn)
        external_id = self._ids.new()
        self.story.mine.add(external_id)
        self._note()
        pieces: list[Piece] = [Said(text)]
        if steering:
            pieces.append(Notice("it will see this at its next step"))
        await self.screen.show(pieces)
        try:
            call = SessionDispatch(
                session=self.key, parts=(Text(text=text),), external_id=external_id, agent=self.agent
            )
            await self.client.call(call)
        except OperantError:
            self.story.mine.discard(external_id)
            self._note()
            raise

    async def stop(self) -> bool:
        """Stop the running turn; tell whether there was one."""
        turn = self.story.turn
        if not turn:
            return False
        try:
            await self.client.call(SessionStop(session=self.key, turn=turn))
        except OperantError as error:
            await self.say(error.line(), bad=True)
        return True

    async def say(self, text: str, *, bad: bool = False) -> None:
        """Say something that is not part of the conversation."""
        await self.screen.show([Notice(text, bad)])


def _turn(event: asyncio.Event, *, on: bool) -> None:
    if on:
        event.set()
    else:
        event.clear()
