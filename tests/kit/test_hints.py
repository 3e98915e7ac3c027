"""What ripgrep is asked never leaves out a file that the real expression matches in."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operant.kit.hints import hint_of

ANY = "(?-u:.)*"


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("def needle_", "def needle_"),
        (r"def needle_\w+\(", rf"def needle_{ANY}\("),
        (r"^class Foo\b", "class Foo"),
        ("foo|bar", "foo|bar"),
        ("foo|b", ""),
        ("foo(bar|baz)qux", f"foo{ANY}qux"),
        ("colou?r", f"colo{ANY}r"),
        ("ab{2,3}cd", f"a{ANY}cd"),
        ("(?i)foo", ""),
        ("x(?i:foo)yy", ""),
        (r"a\.b", r"a\.b"),
        (r"\d+", ""),
        ("[ab]cd", "cd"),
        (r"foo(?!bar)", "foo"),
        ("größe", "größe"),
        ("(foo", ""),
        (r"\<tag", "<tag"),
        ("", ""),
    ],
)
def test_a_hint_is_what_must_stand_there(pattern: str, hint: str) -> None:
    assert hint_of(pattern) == hint


PIECES = st.sampled_from(
    ["ab", "b", r"\w", r"\.", ".", "*", "+", "?", "{2}", "(", ")", "|", "[ab]", "^", "$", "ü", " "]
)
TEXT = st.text(alphabet="ab.ü \n\u0301²", max_size=12)


@pytest.mark.skipif(not shutil.which("rg"), reason="needs ripgrep: apt install ripgrep")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, min_size=1, max_size=6), TEXT)
def test_ripgrep_finds_whatever_python_finds(tmp_path: Path, pieces: list[str], text: str) -> None:
    pattern = "".join(pieces)
    try:
        expression = re.compile(pattern)
    except re.error:
        return
    hint = hint_of(pattern)
    if hint and any(expression.search(line) for line in text.splitlines()):
        (tmp_path / "f").write_text(text)
        found = subprocess.run(["rg", "--no-config", "--text", "-l", "-e", hint, str(tmp_path / "f")], check=False)
        assert found.returncode == 0
