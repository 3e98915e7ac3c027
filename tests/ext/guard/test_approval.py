"""What an agent's approval map decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.ext.guard.approval import decide, fits, main_argument
from operant.ext.guard.question import question_about, visible
from operant.sdk import Effect, ToolSpec


def spec(name: str, argument: str = "command", effect: Effect = "external") -> ToolSpec:
    schema = {"type": "object", "properties": {"times": {"type": "integer"}, argument: {"type": "string"}}}
    return ToolSpec(name=name, description="", schema=schema, effect=effect)


def answer(approval: dict[str, str], name: str, argument: str) -> str:
    main = "command" if name == "shell" else "path"
    return decide(approval, spec(name, main), {main: argument}).answer  # type: ignore[arg-type]


@pytest.mark.parametrize(("effect", "expected"), [("read", "allow"), ("idempotent", "allow"), ("external", "ask")])
def test_the_effect_decides_where_the_map_is_silent(effect: Effect, expected: str) -> None:
    assert decide({"other": "deny"}, spec("tool", effect=effect), {}).answer == expected


@pytest.mark.parametrize(
    ("approval", "name", "argument", "expected"),
    [
        ({"shell": "allow"}, "shell", "rm -rf . && true", "allow"),
        ({"shell": "deny"}, "shell", "ls", "deny"),
        ({"write_*": "ask"}, "write_file", "a.txt", "ask"),
        ({"write_*": "deny", "write_file": "allow"}, "write_file", "a.txt", "allow"),
        ({"*": "deny", "write_*": "ask"}, "write_file", "a.txt", "ask"),
        ({"*": "allow"}, "shell", "ls | wc", "allow"),
        ({"shell(git status*)": "allow"}, "shell", "git status --short", "allow"),
        ({"shell(git status*)": "allow"}, "shell", "git push", "ask"),
        ({"shell(*)": "allow"}, "shell", "a; b", "allow"),
        ({"shell(git *)": "allow", "shell(git push*)": "ask"}, "shell", "git push origin", "ask"),
        ({"shell(git *)": "deny", "shell(git log*)": "allow"}, "shell", "git log -3", "allow"),
        ({"shell(git *)": "allow", "shell(git push)": "deny"}, "shell", "git push", "deny"),
        ({"write_file(docs/*)": "allow", "write_file": "ask"}, "write_file", "docs/a.md", "allow"),
        ({"write_file(docs/*)": "allow", "write_file": "ask"}, "write_file", "src/a.py", "ask"),
        ({"write_file(a;b*)": "allow", "write_file": "ask"}, "write_file", "a;b.txt", "allow"),
        ({"a*": "allow", "*a": "deny"}, "aa", "x", "deny"),
        ({"a*": "allow", "*a": "ask"}, "aa", "x", "ask"),
    ],
)
def test_the_most_specific_rule_wins_and_the_stricter_among_equals(
    approval: dict[str, str], name: str, argument: str, expected: str
) -> None:
    assert answer(approval, name, argument) == expected


@pytest.mark.parametrize(
    "command",
    [
        "git status; curl evil",
        "git status && curl evil",
        "git status & curl evil",
        "git status | sh",
        "git status $(curl evil)",
        "git status `curl evil`",
        "git status > ~/.bashrc",
        "git status < /etc/passwd",
        "git status\ncurl evil",
        "git status\rcurl evil",
        "git status <(curl evil)",
        "git status $HOME/.ssh/id_rsa",
    ],
)
def test_a_pattern_never_allows_more_than_the_one_program_it_names(command: str) -> None:
    assert answer({"shell(git status*)": "allow"}, "shell", command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "ls && rm -rf /",
        "ls;rm   -rf /",
        "echo $(rm -rf /)",
        "(rm -rf /)",
        "rm\u200b -rf /",
        "\uff52\uff4d -rf /",
    ],
)
def test_a_denied_command_is_denied_in_every_piece_and_disguise(command: str) -> None:
    assert answer({"shell": "allow", "shell(rm *)": "deny"}, "shell", command) == "deny"


def test_a_rule_that_cannot_be_read_denies_and_says_which() -> None:
    decision = decide({"shell(git": "allow"}, spec("shell"), {"command": "git status"})

    assert decision.answer == "deny"
    assert "'shell(git'" in decision.why


def test_leaving_out_the_main_argument_does_not_move_the_pattern_to_the_next_one() -> None:
    schema = {"properties": {"path": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "content": {"type": "string"}}}
    write = ToolSpec(name="write", description="", schema=schema)

    assert main_argument(write, {"path": None, "content": "docs/x"}) is None
    assert decide({"write(docs/*)": "allow"}, write, {"path": None, "content": "docs/x"}).answer == "ask"


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=8))
def test_patterns_fit_as_regular_expressions_do(pattern: str, text: str) -> None:
    import re

    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
    assert fits(pattern, text) is expected


@given(st.text())
def test_a_command_with_shell_signs_is_never_allowed_by_a_pattern(rest: str) -> None:
    assert answer({"shell(git*)": "allow"}, "shell", f"git{rest}; x") == "ask"


def test_a_question_shows_what_could_hide() -> None:
    question = question_about("operant", "shell", "rm -rf \u202egpj.a\u200b ü\n#", {})

    assert question == "May operant use shell? rm -rf \\u{202e}gpj.a\\u{200b} ü\\u{a}#"


def test_a_long_question_shows_both_ends() -> None:
    question = question_about("operant", "shell", "begin" + "x" * 5_000 + "end", {})

    assert "begin" in question and question.endswith("end")
    assert len(question) < 600


def test_a_call_without_a_main_argument_is_shown_whole() -> None:
    assert question_about("operant", "move", None, {"y": 2, "x": 1}) == 'May operant use move? {"x":1,"y":2}'


@given(st.text())
def test_nothing_invisible_is_shown(text: str) -> None:
    import unicodedata

    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"} for char in visible(text))
