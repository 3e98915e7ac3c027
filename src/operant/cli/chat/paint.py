"""Draw the pieces of a story: as coloured text for a terminal of a given width."""

from __future__ import annotations

from io import StringIO
from typing import assert_never

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown
from rich.padding import Padding
from rich.text import Text

from operant.cli import figures
from operant.cli.calls import MARKS, outcome_note, short, whole
from operant.cli.chat.pieces import Answered, Did, Notice, Over, Piece, Question, Said, Words
from operant.cli.chat.story import Running, Story
from operant.cli.inert import inert, one_line
from operant.cli.output import PROMPT
from operant.kernel.records import Outcome

_KEPT_LINES = 3
_TAIL_LINES = 5
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_COLOURS: dict[Outcome, str] = {"ok": "green", "interrupted": "yellow", "cancelled": "yellow"}


class Paint:
    """Turn pieces and live lines into text with colours."""

    def __init__(self, width: int, *, colour: bool = True) -> None:
        self.width = max(width, 20)
        self._colour = colour

    def piece(self, piece: Piece) -> str:
        """Draw one finished piece."""
        return self._drawn(*_drawing(piece, self.width)) + ("\n" if isinstance(piece, Said | Words | Over) else "")

    def live(self, story: Story, now: float, height: int) -> str:
        """Draw what changes, in at most `height` lines; the end of it counts."""
        parts: list[RenderableType] = []
        if story.partial.strip():
            parts.append(_markdown(inert(_end_of(story.partial, 2 * height))))
        for call in story.running.values():
            parts.extend(_running(call, now, self.width))
        if not parts and story.busy and not story.questions:
            said = one_line(story.thinking[-300:], self.width - 16) if story.thinking else ""
            parts.append(Text(f"{_spin(now)} thinking {said}", style="dim", no_wrap=True, overflow="ellipsis"))
        lines = self._drawn(*parts).splitlines() if parts else []
        return "\n".join(lines[-height:])

    def _drawn(self, *parts: RenderableType) -> str:
        out = StringIO()
        console = Console(
            file=out,
            width=self.width,
            force_terminal=self._colour,
            no_color=None if self._colour else True,
            highlight=False,
            soft_wrap=False,
        )
        for part in parts:
            console.print(part)
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        filled = [index for index, line in enumerate(lines) if inert(line).strip()] or [0]
        return "\n".join(lines[filled[0] : filled[-1] + 1])


def _drawing(piece: Piece, width: int) -> list[RenderableType]:
    match piece:
        case Said():
            return [Text(f"{PROMPT} {piece.text}", style="bold")]
        case Words():
            return [_markdown(piece.text)]
        case Did():
            return _did(piece, width)
        case Question():
            return _question(piece)
        case Answered():
            return [_answered(piece)]
        case Notice():
            words = inert(piece.text).replace("\n", "\n  ")
            return [Text(f"· {words}", style="red" if piece.bad else "dim")]
        case Over():
            return _over(piece)
        case _:
            assert_never(piece)


class _Heading(Heading):
    """A heading that stands at the left, where reading begins."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Words(Markdown):
    elements = {**Markdown.elements, "heading_open": _Heading}


def _markdown(text: str) -> Markdown:
    # Links are shown as words and address: a terminal's own links can say one thing and open another.
    return _Words(text, hyperlinks=False, code_theme="ansi_dark")


def _end_of(text: str, count: int) -> str:
    """Return the last lines of a block, in a code fence where they are: drawing all of a long one takes too long."""
    lines = text.split("\n")
    before, shown = lines[:-count], lines[-count:]
    fences = [line for line in before if line.lstrip().startswith(("```", "~~~"))]
    return "\n".join([fences[-1], *shown] if len(fences) % 2 else shown)


def _did(did: Did, width: int) -> list[RenderableType]:
    colour = _COLOURS.get(did.outcome, "red")
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{MARKS[did.outcome]} ", style=colour)
    line.append(did.name, style="bold")
    line.append(f"  {short(did.arguments, max(width - len(did.name) - 24, 10))}")
    note = outcome_note(did.outcome)
    line.append(f"  {note}" if note else "", style=colour)
    line.append(f"  {figures.seconds(did.seconds)}" if did.seconds else "", style="dim")
    lines = [part for part in did.output.splitlines() if part.strip()]
    kept = [Text(f"  {part}", style="dim", no_wrap=True, overflow="ellipsis") for part in lines[:_KEPT_LINES]]
    more = len(lines) - _KEPT_LINES
    if more > 0:
        kept.append(Text(f"  … {more} more line{'s' if more > 1 else ''}", style="dim"))
    return [line, *kept]


def _running(call: Running, now: float, width: int) -> list[RenderableType]:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{_spin(now)} ", style="cyan")
    line.append(call.name, style="bold")
    line.append(f"  {short(call.arguments, max(width - len(call.name) - 16, 10))}")
    line.append(f"  {figures.seconds(now - call.since)}", style="dim")
    tail = [inert(part.rpartition("\r")[2]) for part in call.tail.replace("\r\n", "\n").split("\n")]
    shown = [part for part in tail if part.strip()][-_TAIL_LINES:]
    return [line, *(Text(f"  {part}", style="dim", no_wrap=True, overflow="ellipsis") for part in shown)]


def _question(question: Question) -> list[RenderableType]:
    asks = Text(f"? {inert(question.question) or 'May this run?'}", style="yellow bold")
    what = Text("\n".join([question.name, *whole(question.arguments)]))
    return [asks, Padding(what, (0, 0, 0, 2))]


def _answered(answered: Answered) -> Text:
    good = answered.answer == "allow"
    words = f"{'✓ allowed' if good else '✗ denied'}"
    if answered.by and answered.by not in ("owner", "owner:owner"):
        words += f" by {inert(answered.by)}"
    if answered.reason:
        words += f": {answered.reason}"
    return Text(words, style="green" if good else "red")


def _over(over: Over) -> list[RenderableType]:
    steps = f"{over.steps} step{'' if over.steps == 1 else 's'}"
    words = f"{steps} · {figures.used(over.usage)} · {figures.seconds(over.seconds)}"
    if over.reason == "done":
        return [Text(words, style="dim")]
    parts: list[RenderableType] = [Text(over.sentence, style="red")] if over.sentence else []
    return [*parts, Text(f"■ {over.reason.replace('_', ' ')} · {words}", style="yellow")]


def _spin(now: float) -> str:
    return _SPINNER[int(now * 10) % len(_SPINNER)]
