"""What the terminal shows fits it, and is drawn fast enough to stream."""

from time import perf_counter

from operant.cli.chat.paint import Paint
from operant.cli.chat.pieces import Did, Notice, Over, Question, Words
from operant.cli.chat.story import Running, Story
from operant.cli.output import cells
from operant.kernel.records import Usage

PAINT = Paint(60, colour=False)


def test_markdown_is_drawn_without_links_that_hide_their_address() -> None:
    drawn = Paint(60).piece(Words("# Head\n\nsee [docs](http://example.org/a) and **this**"))
    assert "\x1b]8" not in drawn
    assert "http://example.org/a" in PAINT.piece(Words("[docs](http://example.org/a)"))
    assert PAINT.piece(Words("# Head")).startswith("Head")


def test_a_tool_is_a_line_with_its_outcome_and_the_beginning_of_its_output() -> None:
    drawn = PAINT.piece(Did("shell", {"command": "make test"}, "error", 2.5, "one\ntwo\nthree\nfour\nfive"))
    assert drawn.splitlines() == ["✗ shell  make test  2.5 s", "  one", "  two", "  three", "  … 2 more lines"]


def test_a_question_shows_all_of_what_would_run_with_the_unseen_written_out() -> None:
    script = "\n".join(f"line {number}" for number in range(100)) + "\nrm\u200b -rf \x1b[8mhidden"
    drawn = PAINT.piece(Question("a", "shell", {"command": script, "cwd": ""}, "Run it?"))
    assert "line 0" in drawn and "line 99" in drawn
    assert "rm\\u200b -rf \\x1b[8mhidden" in drawn


def test_every_line_fits() -> None:
    pieces = [
        Did("a_tool_with_a_long_name", {"path": "x" * 300, "other": "y" * 300}, "timeout", 61.0, "z" * 300),
        Words("w" * 300),
        Over("t", "max_steps", "s" * 200, Usage(input=1, output=1), 3, 1.0),
        Notice("n" * 200),
    ]
    for piece in pieces:
        assert max(cells(line) for line in PAINT.piece(piece).splitlines()) <= 60


def test_the_live_end_is_never_higher_than_asked() -> None:
    story = Story(lambda: 0.0, turn="t", partial="\n".join(f"- item {number}" for number in range(200)))
    story.running["c"] = Running("shell", {"command": "make"}, 0.0, "out\n" * 50)
    lines = PAINT.live(story, 1.0, 10).splitlines()
    assert len(lines) == 10
    assert "shell" in "".join(lines)


def test_a_long_code_block_stays_cheap_while_it_grows() -> None:
    code = "```python\n" + "\n".join(f"value_{number} = {number}" for number in range(5000))
    story = Story(lambda: 0.0, turn="t", partial=code)
    began = perf_counter()
    drawn = PAINT.live(story, 1.0, 20)
    assert perf_counter() - began < 0.5
    assert "value_4999 = 4999" in drawn
    assert "value_100 " not in drawn
