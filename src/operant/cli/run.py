"""`operant run`: one question, one answer on standard output."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import click

from operant.cli.chat.loop import Chat
from operant.cli.chat.pieces import Answered, Did, Notice, Over, Piece, Question, Words
from operant.cli.chat.plain import Lines, plain_lines
from operant.cli.chat.question import read_answer
from operant.cli.chat.story import Story
from operant.cli.here import with_link
from operant.cli.inert import inert
from operant.cli.output import dim, json_option, print_json
from operant.kernel.records import Event, Json, MessageQueued, MessageReceived, ModelReplied, Usage, text_of
from operant.kernel.syscalls import SessionHistory, SessionUpdate
from operant.sdk.client import Client

_FAILED, _REFUSED, _INTERRUPTED = 1, 3, 130
_STOP_S = 5.0


@click.command(help="Ask once and print the answer. `-` reads the prompt from standard input.")
@click.argument("prompt")
@click.option("--model", default="", help="A model as provider/model, for this session.")
@click.option("--agent", default="", help="Who answers.")
@click.option("--session", default="", help="Go on with this session; a new one is made without.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds after which it is stopped.")
@json_option
def command(prompt: str, model: str, agent: str, session: str, timeout: float | None, as_json: bool) -> int:
    """Run one turn."""
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text.strip():
        raise click.UsageError("The prompt is empty.")
    sink = Sink(as_json)
    run = Run(text, sink, timeout)
    return with_link(lambda client: run.go(client, agent, session, model))


class Sink:
    """Words to standard output, what is done to standard error, as far as somebody looks."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.streams = sys.stdout.isatty() and not as_json
        self.watched = sys.stderr.isatty()
        self.over: Over | None = None
        self.story: Story | None = None
        self._flowed = ""  # of the block that is arriving
        self._gap = False

    async def show(self, pieces: Sequence[Piece]) -> None:
        """Show what happens while it happens."""
        for piece in pieces:
            match piece:
                case Words() if self.streams:
                    self._flow(piece.text)
                    self._end_block()
                case Over():
                    self.over = piece
                case Question() | Did() | Notice() | Answered():
                    self._end_block()
                    self._aside(piece)
                case _:
                    continue

    def changed(self) -> None:
        """Write what has arrived of the block that is not finished."""
        if self.streams and self.story is not None:
            self._flow(inert(self.story.partial).lstrip("\n"))

    def _flow(self, text: str) -> None:
        """Go on with a block; what was rewritten meanwhile begins anew on its own line."""
        if not text.startswith(self._flowed):
            self._end_block()
        if text and not self._flowed and self._gap:
            sys.stdout.write("\n")
        sys.stdout.write(text[len(self._flowed) :])
        sys.stdout.flush()
        self._flowed = text

    def _end_block(self) -> None:
        if self._flowed:
            sys.stdout.write("\n")
            self._flowed, self._gap = "", True

    def _aside(self, piece: Piece) -> None:
        if not self.watched:
            return
        for line in plain_lines(piece):
            sys.stderr.write((line if isinstance(piece, Question) else dim(line)) + "\n")
        sys.stderr.flush()


class Run:
    """One prompt on its way."""

    def __init__(self, text: str, sink: Sink, timeout: float | None) -> None:
        self._text = text
        self._sink = sink
        self._timeout = timeout
        self._interrupted = asyncio.Event()

    async def go(self, client: Client, agent: str, session: str, model: str) -> int:
        """Return the exit code."""
        with suppress(NotImplementedError):  # Windows: KeyboardInterrupt ends it
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
        async with Chat(client, self._sink, agent) as chat:
            after = await self._enter(chat, session, agent, model)
            await chat.send(self._text)
            code = await self._wait(chat)
            events = await client.call(SessionHistory(session=chat.key, after=after))
        return self._report(chat, events, code)

    async def _enter(self, chat: Chat, session: str, agent: str, model: str) -> int:
        """Open the session and return where it ends now."""
        info = await chat.enter(session, agent, quiet=True)
        self._sink.story = chat.story
        if model:
            info = await chat.client.call(SessionUpdate(session=info.key, model=model))
        return info.events

    async def _wait(self, chat: Chat) -> int:
        """Wait for the turn's end, an unanswerable question, the time limit or Ctrl-C."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._until_over(chat)
        except TimeoutError:
            await self._stop(chat)
            return self._fail(f"Stopped after {self._timeout:g} s; the session is {chat.key}.", _FAILED)

    async def _until_over(self, chat: Chat) -> int:
        while True:
            await _first(chat.settled.wait(), chat.left.wait(), self._interrupted.wait())
            if self._interrupted.is_set():
                await self._stop(chat)
                return _INTERRUPTED
            if chat.left.is_set():
                return _FAILED
            question = chat.question
            if question is None:
                return self._code()
            if not await self._ask(chat, question):
                return self._fail(f"It waits for your yes: operant approval allow {question.approval_id}", _REFUSED)

    def _code(self) -> int:
        over = self._sink.over
        if over is None or over.reason == "done":
            return 0
        return _REFUSED if over.reason == "rejected" else _FAILED

    async def _ask(self, chat: Chat, question: Question) -> bool:
        """Let the person at the terminal decide; False when there is none."""
        if not (sys.stdin.isatty() and self._sink.watched):
            return False
        lines = Lines(sys.stdin)
        while question.approval_id in chat.story.questions:
            line = await lines.next()
            if line is None:
                return False
            answer = read_answer(line)
            if answer is not None:
                await chat.answer(question, answer)
        return True

    async def _stop(self, chat: Chat) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await chat.stop()
                await chat.idle.wait()

    def _interrupt(self) -> None:
        if self._interrupted.is_set():
            raise KeyboardInterrupt
        self._interrupted.set()

    def _fail(self, line: str, code: int) -> int:
        sys.stderr.write(f"operant: {line}\n")
        return code

    def _report(self, chat: Chat, events: Sequence[Event], code: int) -> int:
        """Print the answer, or everything as one object."""
        turn = next((event.turn for event in events if isinstance(event.body, MessageReceived)), "")
        own = [event.body for event in events if event.turn == turn]
        answer = "\n\n".join(text_of(body.parts) for body in own if isinstance(body, MessageQueued))
        models = [body.model for body in own if isinstance(body, ModelReplied)]
        over = self._sink.over
        if self._sink.as_json:
            print_json(_told(chat.key, turn, answer, models[-1] if models else "", over))
        elif over is not None and over.reason not in ("done", "stopped"):
            self._fail(inert(answer or over.sentence or f"It ended: {over.reason}."), code)
        elif not self._sink.streams and answer:
            sys.stdout.write(inert(answer) + "\n")
        return code


def _told(session: str, turn: str, answer: str, model: str, over: Over | None) -> Json:
    return {
        "response": answer,
        "session": session,
        "turn": turn,
        "model": model,
        "reason": over.reason if over else "open",
        "steps": over.steps if over else 0,
        "usage": over.usage if over else Usage(),
    }


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of them does; the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait) for wait in waits]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
