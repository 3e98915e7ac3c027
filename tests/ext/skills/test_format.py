"""SKILL.md: strict as the standard's own validator, lenient with what people write."""

from __future__ import annotations

from pathlib import Path

import pytest
import skills_ref
from hypothesis import given, settings
from hypothesis import strategies as st

from operant.ext.skills.format import Unreadable, check_skill, read_skill
from operant.ext.skills.shelf import SHIPPED

GOOD = "---\nname: {name}\ndescription: Does a thing. Use when it is needed.\n---\nDo it.\n"


@pytest.mark.parametrize(
    "folder", sorted(path for path in SHIPPED.iterdir() if path.is_dir()), ids=lambda path: path.name
)
def test_what_we_ship_passes_the_standards_own_validator(folder: Path) -> None:
    assert skills_ref.validate(folder) == []
    assert check_skill((folder / "SKILL.md").read_text("utf-8"), folder.name) == []
    assert len((folder / "SKILL.md").read_text("utf-8").splitlines()) < 500


NAMES = [
    "a",
    "my-skill",
    "Ünder",
    "über-skill",
    "a--b",
    "-a",
    "a-",
    "A",
    "a_b",
    "a b",
    "x" * 64,
    "x" * 65,
    "ﬁne",
    "1-2",
]
HEADS = [
    "description: D", "description: ''", "description: " + "d" * 1025, "compatibility: c\ndescription: D",
    "compatibility: " + "c" * 501 + "\ndescription: D", "colour: blue\ndescription: D", "license: MIT\ndescription: D",
    "metadata:\n  a: b\ndescription: D", "allowed-tools: Read Write\ndescription: D",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_judged_as_the_standard_does(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    text = GOOD.format(name=name)
    (folder / "SKILL.md").write_text(text)
    assert bool(check_skill(text, name)) == bool(skills_ref.validate(folder)), skills_ref.validate(folder)


@pytest.mark.parametrize("head", HEADS)
def test_fields_are_judged_as_the_standard_does(tmp_path: Path, head: str) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    text = f"---\nname: one\n{head}\n---\nDo it.\n"
    (folder / "SKILL.md").write_text(text)
    assert bool(check_skill(text, "one")) == bool(skills_ref.validate(folder)), skills_ref.validate(folder)


def test_what_is_found_is_read_as_far_as_it_goes() -> None:
    loose = read_skill("---\nname: Other\ndescription: Use for: everything\nservice: ./s.py\n---\nBody\n", "folder")
    assert (loose.name, loose.description, loose.body) == ("Other", "Use for: everything", "Body\n")
    assert len(loose.warnings) >= 3
    assert loose.metadata["operant.service"] == "./s.py"
    needs = read_skill("---\nname: n\ndescription: D\nmetadata: {env: 'A_KEY B', bins: git}\n---\n", "n")
    assert (needs.env, needs.programs) == (("A_KEY", "B"), ("git",))
    assert read_skill("---\ndescription: D\n---\n", "folder").name == "folder"


@pytest.mark.parametrize("text", ["", "no frontmatter", "---\nname: a\n---\n", "---\n[", "---\nname: a\n"])
def test_what_cannot_be_used_says_why(text: str) -> None:
    with pytest.raises(Unreadable):
        read_skill(text, "a")


@given(text=st.text(max_size=400), folder=st.text(min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_no_text_breaks_the_reader(text: str, folder: str) -> None:
    for one in (text, f"---\n{text}\n---\nbody"):
        check_skill(one, folder)
        try:
            assert read_skill(one, folder).description
        except Unreadable as error:
            assert str(error)


def test_a_colon_below_metadata_is_forgiven_too_and_the_letter_says_what_to_do() -> None:
    text = "---\nname: a\ndescription: A.\nmetadata:\n  operant.service: exec: node ./service.js --fast\n---\nB.\n"
    read = read_skill(text, "a")
    assert read.metadata == {"operant.service": "exec: node ./service.js --fast"}
    assert "a value with a colon is not in quotes" in read.warnings
    (fault,) = check_skill(text, "a")
    assert fault.startswith("line 5: ") and fault.endswith("; a value with a colon takes quotes")
