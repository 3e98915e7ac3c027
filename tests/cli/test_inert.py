"""Words from models and tools can do nothing to a terminal."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.cli.inert import exposed, inert, one_line, quoted


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("\x1b]52;c;cm0gLXJm\x07", ""),
        ("\x9b2Jgone", "gone"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("a\x08b\x07c", "abc"),
        ("safe\u202eevil", "safeevil"),
        ("tag\U000e0041s", "tags"),
        ("line\r\nline\ttab", "line\nline\ttab"),
        ("Grüße 👩‍👧 日本", "Grüße 👩‍👧 日本"),
    ],
)
def test_what_a_terminal_would_obey_is_gone(text: str, left: str) -> None:
    assert inert(text) == left


@given(st.text(alphabet=st.sampled_from("\x1b[]0;2J\x07\\\x9bAm\r\n\x9d\x00 x")))
def test_nothing_that_is_left_controls_anything(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", inert(text))
    assert inert(inert(text)) == inert(text)


@given(st.text())
def test_what_is_exposed_hides_nothing(text: str) -> None:
    shown = exposed(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]", shown)


def test_unseen_characters_are_written_out_for_whoever_decides() -> None:
    assert exposed("rm\u200b -r\u202ef \x1b[8m") == "rm\\u200b -r\\u202ef \\x1b[8m"


def test_one_line_is_one_line() -> None:
    assert one_line("a\nb\t c\x1b[2J", 20) == "a b c"
    assert one_line("x" * 30, 10) == "x" * 9 + "…"


@given(st.text())
def test_json_means_the_same_when_it_is_harmless(text: str) -> None:
    shown = quoted(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == text
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e]", shown)
