"""The timeline says what happened, how long it took, and why a prefix was lost."""

import pytest

from operant.cli.timeline import tell
from operant.cli.trace import first_difference
from operant.cli.usage import since
from operant.cli.waterfall import draw, total
from operant.kernel.records import ContextCompacted, Text, ToolEnded, ToolStarted, TurnEnded, TurnStarted
from tests.cli.recorded import Recorder, opened, queued, received, replied, shell, working_turn


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_turn_becomes_steps_tools_and_questions_with_their_times() -> None:
    (turn,) = tell(working_turn())

    assert [entry.kind for entry in turn.entries if entry.kind != "note"] == [
        "you",
        "step",
        "asked",
        "tool",
        "step",
        "reply",
    ]
    assert turn.reason == "done"
    assert turn.steps == 2
    assert turn.usage.input == 2000
    assert turn.model_ms == 160
    assert turn.tool_ms == 200
    assert turn.asked_ms == 12_000


def test_it_is_drawn_with_everything_that_was_asked_for() -> None:
    turns = tell(working_turn())
    text = "\n".join(draw(turns, 140))

    for words in (
        "what changed?",
        "scripted/m",
        "1.0k in (60 % cached)",
        "50 out",
        "$0.0020",
        "first token 20 ms",
        "shell git status",
        "→ allow by owner",
        "12.0 s",
        "delivered: Nothing changed.",
        "█",
    ):
        assert words in text
    assert "waiting for you 9" in total(turns)


def test_why_a_tool_failed_stands_below_it() -> None:
    log = Recorder()
    log.add(TurnStarted(), received("remove it"), replied("", shell("rm x")))
    log.add(ToolStarted(call_id="c1", name="shell", arguments={"command": "rm x"}, effect="external"))
    log.add(ToolEnded(call_id="c1", name="shell", outcome="error", parts=(Text(text="No such\x1b[31m file."),)))
    log.add(TurnEnded(reason="done"))
    lines = draw(tell(log.events), 100)
    at = next(index for index, line in enumerate(lines) if "✗ shell rm x" in line)
    assert lines[at + 1].strip().startswith("No such")
    assert "\x1b" not in lines[at + 1]
    assert not any("clean" in line for line in draw(tell(working_turn()), 100))


def test_a_prompt_that_changed_is_named_with_its_cause() -> None:
    recorder = Recorder()
    recorder.add(received("a"), TurnStarted(), opened(), replied("x"), queued("x"), TurnEnded(reason="done"))
    recorder.turn = "t2"
    recorder.add(received("b"), TurnStarted(), opened(system="s2", reason="AGENT.md changed"), replied("y"))

    first, second = tell(recorder.events)

    assert first.breaks == ()
    assert [(one.part, one.cause, one.old, one.new) for one in second.breaks] == [
        ("system", "AGENT.md changed", "s1", "s2")
    ]
    assert "cause: AGENT.md changed" in "\n".join(draw([second], 160))


def test_a_context_opened_with_the_same_bytes_breaks_nothing() -> None:
    recorder = Recorder()
    recorder.add(received("a"), TurnStarted(), opened(), replied("x"), opened(reason="restart"), replied("y"))
    (turn,) = tell(recorder.events)
    assert turn.breaks == ()


def test_a_compaction_is_a_break_in_the_messages() -> None:
    recorder = Recorder()
    recorder.add(received("a"), TurnStarted(), opened())
    recorder.add(ContextCompacted(upto=1, summary="s", strategy="summary", tokens_before=9000, tokens_after=800))
    (turn,) = tell(recorder.events)
    assert turn.breaks[0].part == "messages"
    assert turn.reason == "open"


def test_the_first_differing_byte_is_found() -> None:
    assert first_difference(b"same old", b"same new") == 5
    assert first_difference(b"same", b"same and more") == 4


def test_lines_fit_the_width() -> None:
    for line in draw(tell(working_turn()), 100)[1:]:
        assert len(line) <= 100


def test_spans_of_usage_begin_on_the_right_day() -> None:
    noon = 1_790_000_000_000_000  # 2026-09-21
    assert since("today", noon) == "2026-09-21"
    assert since("7d", noon) == "2026-09-15"
    assert since("all", noon) == ""
