"""The chat in a terminal: finished pieces scroll up, the live end and the input line stay below."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from operant.cli.chat.loop import Chat
from operant.cli.chat.paint import Paint
from operant.cli.chat.pieces import Over, Piece, Question, Said, Words
from operant.cli.chat.question import HELP, read_answer
from operant.cli.chat.slash import COMMANDS
from operant.cli.output import PROMPT
from operant.kit.clock import SystemClock

_TICK_S = 0.1
_LINES = 64
"""Lines that wait to be carried out; more are refused with the bell."""
_MENU_LINES = 9


class Terminal:
    """Be the screen and the keyboard of a chat."""

    def __init__(self, history: Path) -> None:
        self._chat: Chat | None = None
        self._clock = SystemClock()
        self._lines: asyncio.Queue[str] = asyncio.Queue(_LINES)
        self._hint = ""
        self._tight = False
        self._stops: asyncio.Queue[None] = asyncio.Queue(1)
        self._session: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            history=FileHistory(_private(history)),
            completer=_Commands(),
            complete_while_typing=True,
            key_bindings=self._keys(),
            placeholder=self._placeholder,
            erase_when_done=True,
            prompt_continuation="  ",
            reserve_space_for_menu=0,
        )
        self._session.app.min_redraw_interval = 0.05
        self._session.default_buffer.on_text_changed += self._typed

    async def show(self, pieces: Sequence[Piece]) -> None:
        """Print above the input line."""
        paint = self._paint()
        lines: list[str] = []
        for piece in pieces:
            paragraph = isinstance(piece, Said | Words | Question)
            lines += ["", paint.piece(piece)] if paragraph and self._tight else [paint.piece(piece)]
            self._tight = not isinstance(piece, Said | Words | Over)
        await run_in_terminal(lambda: _write("\n".join(lines)))

    def changed(self) -> None:
        """Draw the live end anew."""
        self._session.app.invalidate()

    async def run(self, chat: Chat) -> None:
        """Take lines until the person leaves."""
        self._chat = chat
        async with asyncio.TaskGroup() as group:
            helpers = [group.create_task(work) for work in (self._carry(), self._stop(), self._tick(), self._watch())]
            await self._session.prompt_async()
            chat.left.set()
            for helper in helpers:
                helper.cancel()

    # ------------------------------------------------------------------ tasks

    async def _carry(self) -> None:
        """Carry out lines one after the other."""
        while True:
            line = await self._lines.get()
            if self._chat is not None:
                await self._chat.take(line)
                self.changed()

    async def _stop(self) -> None:
        """Stop turns at once, whatever else is being carried out."""
        while True:
            await self._stops.get()
            if self._chat is not None:
                await self._chat.stop()

    async def _tick(self) -> None:
        """Keep clocks and spinners going while something runs."""
        while self._chat is not None:
            await self._chat.busy.wait()
            await self._clock.sleep(_TICK_S)
            self.changed()

    async def _watch(self) -> None:
        """Leave when the chat is over."""
        if self._chat is not None:
            await self._chat.left.wait()
            if self._session.app.is_running:
                self._session.app.exit(result="")

    # ------------------------------------------------------------------ what is drawn

    def _paint(self) -> Paint:
        return Paint(shutil.get_terminal_size().columns, colour="NO_COLOR" not in os.environ)

    def _message(self) -> ANSI:
        chat = self._chat
        if chat is None:
            return ANSI(f"{PROMPT} ")
        height = max(shutil.get_terminal_size().lines - 6, 3)
        live = self._paint().live(chat.story, self._clock.monotonic(), height)
        prompt = f"\x1b[33m{HELP}\x1b[0m\n? " if chat.question else f"\x1b[1m{PROMPT}\x1b[0m "
        return ANSI(f"{live}\n\n{prompt}" if live else prompt)

    def _placeholder(self) -> ANSI:
        """Say in the empty line what can be done now."""
        chat = self._chat
        words = "/help · Ctrl-D leaves"
        if self._hint or chat is None:
            words = self._hint
        elif chat.question:
            words = "it waits for your answer"
        elif chat.story.busy:
            words = "type to steer it · Ctrl-C stops it"
        return ANSI(f"\x1b[2m{words}\x1b[0m")

    def _typed(self, buffer: Buffer) -> None:
        """Forget the hint; keep lines free below for the menu of commands, and only for it."""
        self._hint = ""
        self._session.reserve_space_for_menu = _MENU_LINES if buffer.text.startswith("/") else 0

    # ------------------------------------------------------------------ keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("enter")(self._send)
        keys.add("escape", "enter")(_break_line)
        keys.add("c-j")(_break_line)
        keys.add("c-c")(self._interrupt)
        keys.add("c-d")(self._leave)
        return keys

    def _send(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        self._hint = ""
        if not buffer.text.strip():
            return
        if self._lines.full() or not self._fits(buffer.text):
            event.app.output.bell()
            return
        self._lines.put_nowait(buffer.text)
        buffer.reset(append_to_history=True)

    def _fits(self, text: str) -> bool:
        """Tell whether a line can be sent now; while a question is open, only answers and commands can."""
        waiting = self._chat is not None and self._chat.question is not None
        return not waiting or text.startswith("/") or read_answer(text) is not None

    def _interrupt(self, event: KeyPressEvent) -> None:
        chat = self._chat
        if chat is not None and chat.story.busy:
            if not self._stops.full():
                self._stops.put_nowait(None)
        elif event.current_buffer.text:
            event.current_buffer.reset()
        elif self._hint:
            event.app.exit(result="")
        else:
            self._hint = "Ctrl-C again leaves"

    def _leave(self, event: KeyPressEvent) -> None:
        if not event.current_buffer.text:
            event.app.exit(result="")


class _Commands(Completer):
    """Complete the names of `/` commands."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or " " in text or "\n" in text:
            return
        for name, (line, _) in COMMANDS.items():
            if name.startswith(text[1:]):
                yield Completion(f"/{name}", start_position=-len(text), display_meta=line)


def _break_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")


def _private(path: Path) -> str:
    """Make the history's file for the owner alone, before anything is written to it."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    return str(path)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
