"""The chat without a terminal: a line in, plain lines out, one turn after the other."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from typing import TextIO

from operant.cli import figures
from operant.cli.calls import MARKS, outcome_note, short, whole
from operant.cli.chat.loop import Chat
from operant.cli.chat.question import HELP
from operant.cli.chat.story import Answered, Did, Notice, Over, Piece, Question, Said, Words
from operant.cli.inert import inert

_WIDTH = 100
_WAITING = 100


class Lines:
    """Read lines in a thread of their own, so that waiting for one holds nothing up, not even the end."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(_WAITING)
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, daemon=True, name="lines").start()

    async def next(self) -> str | None:
        """Return the next line, or None at the end."""
        line = await self._queue.get()
        self._room.release()
        return line

    def _read(self) -> None:
        for line in self._source:
            self._room.acquire()
            if not self._put(line.rstrip("\n")):
                return
        self._put(None)

    def _put(self, line: str | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
        except RuntimeError:
            return False  # the loop is closed: nobody wants to know any more
        return True


class Plain:
    """Print a chat as plain lines."""

    async def show(self, pieces: Sequence[Piece]) -> None:
        """Print what is worth a line."""
        lines = [line for piece in pieces for line in plain_lines(piece)]
        if lines:
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()

    def changed(self) -> None:
        """Do nothing: plain lines have no live end."""

    async def run(self, chat: Chat) -> None:
        """Carry out a line, wait for its turn, take the next; a question is answered by the next line."""
        lines = Lines(sys.stdin)
        while not chat.left.is_set():
            line = await lines.next()
            if line is None:
                break
            await chat.take(line)
            await chat.settled.wait()
        if chat.question is not None:
            await chat.say(f"It waits for an answer: operant approval allow {chat.question.approval_id}")


def plain_lines(piece: Piece) -> list[str]:
    """Return a piece as plain lines."""
    match piece:
        case Words():
            return [piece.text]
        case Did():
            note = outcome_note(piece.outcome) or ("failed" if piece.outcome == "error" else "")
            words = f"{MARKS[piece.outcome]} {piece.name}  {short(piece.arguments, _WIDTH)}  {note}".rstrip()
            return [f"{words}  {figures.seconds(piece.seconds)}"]
        case Question():
            asks = inert(piece.question) or "May this run?"
            return [f"? {asks}", f"  {piece.name}", *(f"  {line}" for line in whole(piece.arguments)), f"  {HELP}"]
        case Answered():
            return [f"{piece.answer}: {piece.name}"]
        case Notice():
            return [f"· {inert(piece.text)}"]
        case Over(reason="done"):
            return []
        case Over():
            return [f"■ {piece.reason}" + (f": {piece.sentence}" if piece.sentence else "")]
        case Said():
            return []
