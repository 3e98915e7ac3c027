"""Draw a timeline: a line for each thing that happened, with a bar for where the time went."""

from __future__ import annotations

from collections.abc import Sequence

from operant.cli import figures
from operant.cli.calls import MARKS, outcome_note
from operant.cli.inert import one_line
from operant.cli.output import cells, coloured, dim, strong
from operant.cli.timeline import Break, Entry, TurnTold
from operant.kernel.records import Usage

_BAR = 20
_NAME = 8
_COLOURS: dict[str, str] = {"step": "blue", "tool": "green", "asked": "yellow", "failed": "red"}


def draw(turns: Sequence[TurnTold], width: int) -> list[str]:
    """Return the timeline as lines of at most `width` columns."""
    lines: list[str] = []
    for turn in turns:
        lines += [_head(turn), *_details(turn, max(width, 60)), ""]
    return lines


def total(turns: Sequence[TurnTold]) -> str:
    """Say what all turns took together."""
    usage = sum((turn.usage for turn in turns), Usage())
    took, model, tool = (sum(getattr(turn, name) for turn in turns) for name in ("took_ms", "model_ms", "tool_ms"))
    asked = sum(turn.asked_ms for turn in turns)
    parts = [
        ("model", model),
        ("tools", tool),
        ("waiting for you", asked),
        ("rest", max(took - model - tool - asked, 0)),
    ]
    shares = " · ".join(f"{name} {100 * part / took:.0f} %" for name, part in parts if took and part / took >= 0.005)
    turns_word = "turn" if len(turns) == 1 else "turns"
    return f"{len(turns)} {turns_word} · {figures.seconds(took / 1_000)} · {figures.used(usage)}" + (
        f"\nwhere the time went: {shares}" if shares else ""
    )


def _head(turn: TurnTold) -> str:
    steps = f"{turn.steps} step{'' if turn.steps == 1 else 's'}"
    good = turn.reason in ("done", "open")
    reason = coloured(turn.reason, "green" if good else "red")
    facts = (
        f"{figures.moment(turn.began)} · {figures.seconds(turn.took_ms / 1_000)} · {steps} · {figures.used(turn.usage)}"
    )
    trigger = "" if turn.trigger == "message" else f" ({turn.trigger})"
    return f"{strong(f'turn {turn.number}')}{trigger}  {reason}  {dim(facts)}"


def _details(turn: TurnTold, width: int) -> list[str]:
    lines: list[str] = []
    step = 0
    for entry in turn.entries:
        step += entry.kind == "step" and not entry.text
        label = f"step {step}" if entry.kind == "step" and not entry.text else entry.kind
        took = figures.seconds(entry.took_ms / 1_000) if entry.took_ms else ""
        room = width - _NAME - _BAR - 14
        words = one_line(_words(entry), room)
        padding = " " * (room - cells(words))
        bar = coloured(_bar(entry, turn.took_ms), _COLOURS.get(entry.kind, "white")) if entry.took_ms else ""
        lines.append(f"  {label:<{_NAME}} {words}{padding} {took:>9} {bar}".rstrip())
        if entry.why:
            lines.append(f"  {'':<{_NAME}}   {dim(one_line(entry.why, width - _NAME - 6))}")
    lines += [f"  {coloured('prefix', 'yellow'):<{_NAME}}   {_broken(one)}" for one in turn.breaks]
    if turn.sentence and not any(one.kind == "reply" and one.text == turn.sentence for one in turn.entries):
        lines.append(f"  {'ended':<{_NAME}} {one_line(turn.sentence, width - _NAME - 4)}")
    return lines


def _words(entry: Entry) -> str:
    if entry.kind == "step":
        return _step_words(entry)
    if entry.kind == "tool":
        return f"{MARKS.get(entry.outcome, '…')} {entry.text}  {outcome_note(entry.outcome)}".rstrip()
    if entry.kind == "reply":
        return f"{entry.outcome}: {entry.text}" if entry.outcome else entry.text
    if entry.kind == "asked":
        return f"{entry.text} → {entry.outcome}"
    return entry.text


def _step_words(entry: Entry) -> str:
    facts = [entry.model, f"{figures.tokens(entry.usage.input)} in ({figures.share(entry.usage)})"]
    facts.append(f"{figures.tokens(entry.usage.output)} out")
    if entry.usage.usd:
        facts.append(figures.money(entry.usage.usd))
    if entry.first_token_ms:
        facts.append(f"first token {figures.seconds(entry.first_token_ms / 1_000)}")
    if entry.attempts > 1:
        facts.append(f"{entry.attempts} attempts")
    return " · ".join([*([f"for {entry.text}"] if entry.text else []), *facts])


def _broken(one: Break) -> str:
    place = {"system": "the system prompt", "tools": "the tool schemas", "messages": "the first message"}[one.part]
    where = f"byte {one.byte} of {place}" if one.byte >= 0 else place
    reads = f'; there it reads "{one_line(one.text, 40)}"' if one.text.strip() else ""
    return f"unlike the last request from {where} on{reads}; cause: {one_line(one.cause, 80)}"


def _bar(entry: Entry, took_ms: float) -> str:
    if took_ms <= 0:
        return ""
    left = min(round(_BAR * entry.start_ms / took_ms), _BAR - 1)
    length = max(1, min(round(_BAR * entry.took_ms / took_ms), _BAR - left))
    return "░" * left + "█" * length + "░" * (_BAR - left - length)
