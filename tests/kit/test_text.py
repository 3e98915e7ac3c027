"""Text of programs and files is made safe to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.kit.text import join_ends, plain, shorten, whole_characters


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07", ""),
        ("\x1b]0;no end, and more text", "0;no end, and more text"),
        ("\x1bPno end, and more text", "no end, and more text"),
        ("10%\r20%\r\nend\r\r\n", "10%\n20%\nend\n"),
        ("a\x00b\x07c\x7fd\x1b", "a\u2400b\u2407c\u2421d\u241b"),
        ("\x9b31mred\x85", "red\ufffd"),
        ("abc\u202etxt.exe", "abc\ufffdtxt.exe"),
        ("hi\U000e0041\U000e0042", "hi\ufffd\ufffd"),
        ("half \ud800", "half \ufffd"),
        ("tab\tand ünïcödé 👩‍🔬 stay\n", "tab\tand ünïcödé 👩‍🔬 stay\n"),
    ],
)
def test_control_characters_become_harmless(raw: str, shown: str) -> None:
    assert plain(raw) == shown


@given(st.text(st.characters(), max_size=200))
def test_nothing_hidden_is_left_and_nothing_changes_twice(text: str) -> None:
    once = plain(text)
    assert plain(once) == once
    assert not any(ord(char) < 32 and char not in "\n\t" for char in once)
    once.encode()


def test_a_sequence_cut_in_two_is_harmless() -> None:
    assert "\x1b" not in plain("text\x1b[3") + plain("1mred")


@given(st.text(max_size=300), st.integers(20, 200))
def test_a_long_text_keeps_its_ends_within_the_limit(text: str, limit: int) -> None:
    short = shorten(text, limit, "[cut]")
    assert len(short) <= max(limit, len(text) if len(text) <= limit else 0)
    if len(text) > limit:
        first, last = short.split("\n[cut]\n")[0], short.rsplit("\n[cut]\n")[-1]
        assert text.startswith(first)
        assert text.endswith(last)


def test_the_beginning_gets_more_room_than_the_end() -> None:
    assert join_ends("a" * 100, "b" * 100, 22, "…" * 10) == "a" * 7 + "\n" + "…" * 10 + "\n" + "b" * 3


@given(st.text(max_size=40), st.integers(0, 160))
def test_utf8_is_cut_between_characters(text: str, size: int) -> None:
    data = text.encode()[:size]
    whole = whole_characters(data)
    assert text.startswith(whole.decode())
    assert len(data) - len(whole) < 4
