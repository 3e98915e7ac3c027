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
from operant.cli.chat.pieces import Answered, Did, Notice, Over, Piece, Question, Said, Words
from operant.cli.chat.question import HELP
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
            return [piece.text, ""]
        case Did():
            return [did_line(piece)]
        case Question():
            asks = inert(piece.question) or "May this run?"
            return [f"? {asks}", *(f"  {line}" for line in (piece.name, *whole(piece.arguments), HELP))]
        case Answered():
            return [f"{piece.answer}: {piece.name}"]
        case Notice():
            return ["· " + inert(piece.text).replace("\n", "\n  ")]
        case Over():
            said = f": {piece.sentence}" if piece.sentence else ""
            return [] if piece.reason == "done" else [f"■ {piece.reason}{said}"]
        case Said():
            return []


def did_line(did: Did) -> str:
    """Say in one line what a tool did."""
    note = outcome_note(did.outcome) or ("failed" if did.outcome == "error" else "")
    words = f"{MARKS[did.outcome]} {did.name}  {short(did.arguments, _WIDTH)}  {note}".rstrip()
    return f"{words}  {figures.seconds(did.seconds)}" if did.seconds else words
