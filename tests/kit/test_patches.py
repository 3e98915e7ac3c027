"""Unified patches: applied where their context stands, and nowhere else."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.kit.patches import BadPatch, patched, read_patch

LINES = st.lists(st.sampled_from(["a", "b", "", "-- x", "++ y", "@@ z", " d", "\t", "ü"]), max_size=12)


def applied(patch: str, data: bytes) -> bytes:
    (file,) = read_patch(patch)
    return patched(file.new, data, file.hunks)[0]


@given(LINES, LINES, st.integers(0, 3))
def test_what_diff_says_is_what_comes_out(before: list[str], after: list[str], context: int) -> None:
    old, new = ([f"{line}\n" for line in lines] for lines in (before, after))
    patch = "".join(difflib.unified_diff(old, new, "a/x", "b/x", n=context))
    if patch:
        assert applied(patch, "".join(old).encode()) == "".join(new).encode()


@given(st.text(max_size=300))
def test_any_text_is_a_patch_or_refused(text: str) -> None:
    try:
        read_patch("--- a/x\n+++ b/x\n" + text)
    except BadPatch as error:
        assert str(error).endswith((".", "'."))


def test_a_hunk_that_moved_is_found_at_the_one_place_where_it_fits() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n b\n-c\n+C\n d\n"
    (file,) = read_patch(patch)
    assert patched("x", b"0\n1\n2\nb\nc\nd\n", file.hunks) == (b"0\n1\n2\nb\nC\nd\n", " (hunk 1 at line 4)")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"0\nb\nc\nd\nb\nc\nd\n", "several places"),
        (b"b\nC\nd\n", "line 2 should be 'c', but the file has 'C'"),
        (b"b\nc", "the file ends"),
        (b"", "the file ends"),
    ],
)
def test_a_hunk_is_never_guessed(data: bytes, why: str) -> None:
    with pytest.raises(BadPatch, match=why):
        applied("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n b\n-c\n+C\n d\n", data)


def test_miscounted_lines_do_not_matter_where_the_text_is_clear() -> None:
    """Models count badly."""
    patch = "--- a/x\n+++ b/x\n@@ -1,9 +1,2 @@\n a\n-b\n+B\n@@ -5,1 +5,1 @@\n-e\n+E\n"
    assert applied(patch, b"a\nb\nc\nd\ne\n") == b"a\nB\nc\nd\nE\n"


def test_line_ends_stay_as_they_are() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-b\n+B\n+c\n"
    assert applied(patch, b"a\r\nb\r\n") == b"a\r\nB\r\nc\r\n"
    assert applied(patch.replace("\n", "\r\n"), b"a\nb\n") == b"a\nB\nc\n"


def test_the_end_of_a_file_without_a_newline() -> None:
    bare = "\\ No newline at end of file\n"
    assert applied(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n{bare}+b\n{bare}", b"a") == b"b"
    assert applied(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n{bare}+b\n", b"a") == b"b\n"
    assert applied("--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a\n+b\n", b"a") == b"a\nb\n"
    assert applied("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+A\n z\n", b"a\nz") == b"A\nz"


def test_what_git_writes_is_understood() -> None:
    patch = (
        "From 123 Mon Sep 17\nSubject: things\n\n---\n x | 2 +-\n\n"
        "diff --git a/old name b/new name\nsimilarity index 90%\nrename from old name\nrename to new name\n"
        "--- a/old name\n+++ b/new name\n@@ -1 +1 @@\n-a\n+b\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        'diff --git "a/gr\\303\\266\\303\\237e" "b/gr\\303\\266\\303\\237e"\nnew file mode 100644\n'
        '--- /dev/null\n+++ "b/gr\\303\\266\\303\\237e"\n@@ -0,0 +1 @@\n+x\n'
        "diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n-- \n2.39.5\n"
    )
    files = [(file.old, file.new, len(file.hunks)) for file in read_patch(patch)]
    assert files == [("old name", "new name", 1), ("gone", "", 1), ("", "größe", 1), ("", "empty", 0)]


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("", "no unified diff"),
        ("hello\n", "no unified diff"),
        ("--- a/x\n+++ b/x\n", "does not say what changes"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "both sides"),
        ("--- a/x\n+++ b/x\n@@ here @@\n-a\n+b\n", "no hunk header"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\n", "changes nothing"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 3\n", "Binary"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "modes"),
        ("diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n", "links"),
    ],
)
def test_what_is_no_such_patch_is_refused(patch: str, why: str) -> None:
    with pytest.raises(BadPatch, match=why):
        read_patch(patch)
