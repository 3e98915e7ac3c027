"""Files with settings at their head, and the YAML below them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.kit.frontmatter import read_matter
from operant.kit.yaml import YamlError, read_yaml, write_yaml


def test_settings_and_body_are_split_and_lines_are_those_of_the_file() -> None:
    matter = read_matter("---\na: 1\nb:\n  c: 2\n---\n\nBody\n---\nmore\n")
    assert matter.settings.data == {"a": 1, "b": {"c": 2}}
    assert matter.settings.line(("b", "c")) == 4
    assert matter.body == "Body\n---\nmore\n"


@pytest.mark.parametrize("text", ["", "Just words.", "\n---\na: 1\n---\n", "----\n"])
def test_a_file_without_frontmatter_is_all_body(text: str) -> None:
    matter = read_matter(text)
    assert matter.settings.data is None
    assert matter.body == text


@pytest.mark.parametrize("text", ["---\r\na: 1\r\n---\r\nBody", "\ufeff---\na: 1\n---   \nBody"])
def test_other_editors_write_other_lines(text: str) -> None:
    matter = read_matter(text)
    assert matter.settings.data == {"a": 1}
    assert matter.body == "Body"


def test_a_fence_that_is_never_closed_is_an_error() -> None:
    with pytest.raises(YamlError, match="never closed"):
        read_matter("---\na: 1\n")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\na: 2", 2, "also in line 1"),
        ("a: &a [*a]", 1, "refers to what it stands in"),
        ("[" * 100_000, 1, "nested too deeply"),
        ("a: !!python/object/apply:os.system [x]", 1, "constructor"),
        ("a: 2024-13-45", 0, "month"),
        ("? [a]\n: b", 1, "a key must be a word"),
        ("a: 1\n---\nb: 1", 2, "single document"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{name}: &{name} [{','.join(['*' + below] * 9)}]\n"
                for below, name in zip("abcdefg", "bcdefgh", strict=True)
            ),
            1,
            "aliases multiply",
        ),
    ],
)
def test_what_is_refused_is_refused_in_words(text: str, line: int, words: str) -> None:
    with pytest.raises(YamlError, match=words) as caught:
        read_yaml(text)
    assert caught.value.line == line


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_matter(f"---\n{text}\n---\n")
        read_yaml(text)
    except YamlError as error:
        assert error.sentence


@given(st.dictionaries(st.text(min_size=1), st.one_of(st.text(), st.integers(), st.booleans(), st.none()), max_size=5))
def test_what_is_written_is_read_back(data: dict[str, object]) -> None:
    assert read_yaml(write_yaml(data)).data == data
