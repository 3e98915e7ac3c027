"""Changes of several files: all or nothing, also over a restart, and taken back by turn (D12)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.ext.tools.conftest import Bench

PATCH = """\
--- a/code.py
+++ b/code.py
@@ -1,2 +1,2 @@
 a = 1
-b = 2
+b = 3
--- /dev/null
+++ b/new/notes.md
@@ -0,0 +1 @@
+fresh
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
"""


@pytest.fixture
def code(workspace: Path) -> Path:
    made = workspace / "code.py"
    made.write_text("a = 1\nb = 2\n")
    (workspace / "old.txt").write_text("old\n")
    return made


def state(workspace: Path) -> dict[str, str]:
    return {str(path.relative_to(workspace)): path.read_text() for path in workspace.rglob("*") if path.is_file()}


async def test_several_edits_are_made_together(bench: Bench, code: Path, workspace: Path) -> None:
    edits = [
        {"path": "code.py", "old": "a = 1", "new": "a = 2"},
        {"path": "./code.py", "old": "a = 2\nb", "new": "c"},
        {"path": "old.txt", "old": "old", "new": "young"},
    ]
    said = await bench.call("edit_files", edits=edits)
    assert said.text.startswith("Edited code.py:\n@@") and "Edited old.txt:" in said.text
    assert state(workspace) == {"code.py": "c = 2\n", "old.txt": "young\n"}


async def test_one_edit_that_fails_is_all_of_them(bench: Bench, code: Path, workspace: Path) -> None:
    before = state(workspace)
    edits = [{"path": "code.py", "old": "a", "new": "x"}, {"path": "old.txt", "old": "nothing", "new": "y"}]
    said = await bench.call("edit_files", edits=edits)
    assert (said.outcome, said.text.startswith("Edit 2: old.txt does not have this text")) == ("error", True)
    assert state(workspace) == before
    assert (await bench.call("edit_files", edits=[])).outcome == "error"


async def test_a_patch_changes_creates_and_deletes(bench: Bench, code: Path, workspace: Path) -> None:
    said = await bench.call("apply_patch", patch=PATCH)
    assert said.text == "Changed code.py.\nCreated new/notes.md.\nDeleted old.txt."
    assert state(workspace) == {"code.py": "a = 1\nb = 3\n", "new/notes.md": "fresh\n"}


async def test_a_patch_renames_and_keeps_the_permissions(bench: Bench, code: Path, workspace: Path) -> None:
    code.chmod(0o750)
    patch = "diff --git a/code.py b/src/main.py\nrename from code.py\nrename to src/main.py\n"
    said = await bench.call("apply_patch", patch=patch)
    assert said.text == "Renamed code.py to src/main.py."
    assert (workspace / "src/main.py").stat().st_mode & 0o777 == 0o750
    assert not code.exists()


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (PATCH.replace("-b = 2", "-b = 7"), "does not fit"),
        (PATCH.replace("new/notes.md", "code.py"), "is there already"),
        (PATCH.replace("-old\n", "-older\n"), "does not fit"),
        (PATCH.replace("new/notes.md", ".git/hooks/post-commit"), "protected"),
        (PATCH.replace("new/notes.md", "../notes.md"), "leads out"),
        ("nonsense", "no unified diff"),
    ],
)
async def test_a_patch_that_does_not_fit_changes_nothing(
    bench: Bench, code: Path, workspace: Path, patch: str, why: str
) -> None:
    before = state(workspace)
    said = await bench.call("apply_patch", patch=patch)
    assert (said.outcome, why in said.text) == ("error", True), said
    assert state(workspace) == before


async def test_a_write_that_fails_in_the_middle_puts_back_what_was_written(
    bench: Bench, code: Path, workspace: Path
) -> None:
    """The second file changes between the check and the write."""
    bench.host.on_set = lambda key: key.startswith("change:") and (workspace / "old.txt").write_text("somebody\n")
    edits = [{"path": "code.py", "old": "a", "new": "x"}, {"path": "old.txt", "old": "old", "new": "y"}]
    said = await bench.call("edit_files", edits=edits)
    assert (said.outcome, said.text) == ("error", "'old.txt' changed since it was read. Nothing was changed.")
    assert state(workspace) == {"code.py": "a = 1\nb = 2\n", "old.txt": "somebody\n"}
    assert "nothing to undo" in (await bench.call("undo_changes")).text  # what did not happen is not undone


@pytest.mark.parametrize("written", [0, 1, 2])
async def test_a_patch_killed_in_the_middle_is_whole_after_its_repetition(
    bench: Bench, code: Path, workspace: Path, written: int
) -> None:
    """The note was kept, some of the files were written, and then the process was killed."""
    before = state(workspace)
    patch = PATCH.rpartition("--- a/old.txt")[0]
    await bench.call("apply_patch", key="k7", patch=patch)
    after = state(workspace)
    kept = {key: value for key, value in bench.host.values.items() if key[1].startswith("change:")}
    bench.host.values.clear()
    bench.host.values.update(kept)
    if written < 2:
        (workspace / "new/notes.md").unlink()
    if written < 1:
        code.write_text(before["code.py"])
    said = await bench.call("apply_patch", key="k7", repeated=True, patch=patch)
    assert said.outcome == "ok", said
    assert ("before a restart" in said.text) == (written == 2)
    assert state(workspace) == after


async def test_a_repetition_does_not_touch_what_others_changed(bench: Bench, code: Path, workspace: Path) -> None:
    patch = PATCH.rpartition("--- a/old.txt")[0]
    await bench.call("apply_patch", key="k7", patch=patch)
    code.write_text("by hand\n")
    said = await bench.call("apply_patch", key="k7", repeated=True, patch=patch)
    assert (said.outcome, "have changed since" in said.text) == ("error", True)
    assert code.read_text() == "by hand\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"path": "code.py", "old": "by", "new": "x"}),
        ("edit_files", {"edits": [{"path": "code.py", "old": "by", "new": "x"}]}),
        ("apply_patch", {"patch": "--- a/code.py\n+++ b/code.py\n@@ -1 +1 @@\n-by hand\n+x\n"}),
        ("delete_file", {"path": "code.py"}),
        ("move_file", {"path": "code.py", "to": "moved.py"}),
        ("write_file", {"path": "code.py", "content": "x"}),
        ("edit_notebook", {"path": "code.py", "cell": 1}),
    ],
)
async def test_d12_no_tool_overwrites_what_changed_since_it_was_seen(
    bench: Bench, code: Path, workspace: Path, tool: str, arguments: dict[str, Any]
) -> None:
    await bench.call("read_file", path="code.py")
    code.write_text("by hand\n")
    said = await bench.call(tool, **arguments)
    assert (said.outcome, "changed since you last saw it" in said.text) == ("error", True)
    assert code.read_text() == "by hand\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"path": "hard", "old": "CANARY", "new": "x"}),
        ("write_file", {"path": "hard", "content": "x"}),
        ("apply_patch", {"patch": "--- a/hard\n+++ b/hard\n@@ -1 +1 @@\n-CANARY\n+x\n"}),
        ("delete_file", {"path": "hard"}),
        ("move_file", {"path": "hard", "to": "soft"}),
        ("move_file", {"path": "mine", "to": "hard"}),
    ],
)
async def test_d4_a_file_with_a_name_elsewhere_is_not_changed(
    bench: Bench, workspace: Path, secret: Path, tool: str, arguments: dict[str, Any]
) -> None:
    os.link(secret, workspace / "hard")
    (workspace / "mine").write_text("mine")
    said = await bench.call(tool, **arguments)
    assert (said.outcome, "hard links" in said.text) == ("error", True), said
    assert secret.read_text() == "CANARY"
    assert sorted(path.name for path in workspace.iterdir()) == ["hard", "mine"]


@pytest.mark.parametrize("tool", ["edit_file", "delete_file", "move_file", "write_file"])
async def test_d2_d5_changes_go_through_no_link(bench: Bench, workspace: Path, secret: Path, tool: str) -> None:
    (workspace / "link").symlink_to(secret)
    (workspace / "up").symlink_to(secret.parent)
    (workspace / "dangling").symlink_to(secret.parent / "new.txt")
    more: dict[str, dict[str, Any]] = {
        "edit_file": {"old": "CANARY", "new": "x"},
        "move_file": {"to": "mine"},
        "write_file": {"content": "x"},
    }
    for path in ("link", "up/secret.txt", "dangling", "up/new.txt"):
        said = await bench.call(tool, path=path, **more.get(tool, {}))
        assert said.outcome == "error", (path, said)
    assert secret.read_text() == "CANARY"
    assert not (secret.parent / "new.txt").exists()


async def test_files_are_deleted_and_moved(bench: Bench, code: Path, workspace: Path) -> None:
    assert (await bench.call("delete_file", path="old.txt")).text == "Deleted old.txt: 4 bytes."
    assert (await bench.call("move_file", path="code.py", to="src/main.py")).text == "Moved code.py to src/main.py."
    assert state(workspace) == {"src/main.py": "a = 1\nb = 2\n"}
    (workspace / "other").write_text("x")
    assert "there already" in (await bench.call("move_file", path="other", to="src/main.py")).text
    assert "does not exist" in (await bench.call("delete_file", path="old.txt")).text
    assert (await bench.call("delete_file", path="src")).outcome == "error"


# ---------------------------------------------------------------------------- undo


async def test_a_turn_is_taken_back_and_brought_again(bench: Bench, code: Path, workspace: Path) -> None:
    code.chmod(0o640)
    before = state(workspace)
    await bench.call("write_file", path="earlier", content="kept")
    await bench.call("edit_file", turn="t2", path="code.py", old="b = 2", new="b = 3")
    await bench.call("edit_file", turn="t2", path="code.py", old="b = 3", new="b = 4")
    await bench.call("delete_file", turn="t2", path="code.py")
    await bench.call("write_file", turn="t2", path="made/new.txt", content="new")
    await bench.call("move_file", turn="t2", path="old.txt", to="moved.txt")
    after = state(workspace)

    dry = await bench.call("undo_changes", turn="t3", dry_run=True)
    assert dry.text == "restore code.py\ndelete made/new.txt\nrestore old.txt\ndelete moved.txt"
    assert state(workspace) == after
    said = await bench.call("undo_changes", turn="t3")
    assert "Restored code.py." in said.text
    assert state(workspace) == {**before, "earlier": "kept"}
    assert code.stat().st_mode & 0o777 == 0o640
    await bench.call("undo_changes", turn="t3")
    assert state(workspace) == after
    await bench.call("undo_changes", turn="t4", back=4)
    assert "earlier" not in state(workspace)
    assert "nothing to undo" in (await bench.call("undo_changes", back=9)).text


async def test_what_somebody_changed_since_is_left_alone(bench: Bench, code: Path, workspace: Path) -> None:
    await bench.call("edit_file", path="code.py", old="b = 2", new="b = 3")
    await bench.call("edit_file", path="old.txt", old="old", new="mine")
    code.write_text("by hand\n")
    said = await bench.call("undo_changes")
    assert (said.outcome, said.text.startswith("Changed since: code.py.")) == ("error", True)
    assert state(workspace) == {"code.py": "by hand\n", "old.txt": "mine\n"}
    assert "only with force" in (await bench.call("undo_changes", dry_run=True)).text
    assert (await bench.call("undo_changes", force=True)).outcome == "ok"
    assert state(workspace) == {"code.py": "a = 1\nb = 2\n", "old.txt": "old\n"}
    await bench.call("undo_changes")
    assert code.read_text() == "by hand\n"


async def test_each_session_takes_back_its_own(bench: Bench, code: Path) -> None:
    await bench.call("edit_file", path="code.py", old="b = 2", new="b = 3")
    assert "nothing to undo" in (await bench.call("undo_changes", session="s2")).text
    assert "b = 3" in code.read_text()


async def test_an_undo_repeated_after_a_crash_is_done_once(bench: Bench, code: Path) -> None:
    await bench.call("edit_file", path="code.py", old="b = 2", new="b = 3")
    await bench.call("undo_changes", key="u1")
    said = await bench.call("undo_changes", key="u1", repeated=True)
    assert (said.outcome, code.read_text()) == ("ok", "a = 1\nb = 2\n")


async def test_what_was_before_is_kept_before_it_is_overwritten(bench: Bench, code: Path) -> None:
    """The note comes first: a kill right after it loses nothing."""
    seen: list[str] = []

    def noted(key: str) -> None:
        if key.startswith("change:"):
            seen.append(code.read_text())

    bench.host.on_set = noted
    said = await bench.call("edit_file", path="code.py", old="b = 2", new="b = 3")
    assert seen == ["a = 1\nb = 2\n"]
    assert [await bench.host.blobs.get_blob(blob.digest) for blob in said.artifacts] == [b"a = 1\nb = 2\n"]


async def test_what_is_no_longer_kept_is_not_undone(bench: Bench, code: Path) -> None:
    await bench.call("edit_file", path="code.py", old="b = 2", new="b = 3")
    bench.host.blobs.kept.clear()
    assert "no longer kept" in (await bench.call("undo_changes")).text
    assert "b = 3" in code.read_text()


# ---------------------------------------------------------------------------- notebooks


@pytest.fixture
def book(workspace: Path) -> Path:
    cells = [
        {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# Title\n", "ü"]},
        {"cell_type": "code", "execution_count": 3, "id": "c", "metadata": {}, "outputs": [{}], "source": ["x"]},
    ]
    made = workspace / "book.ipynb"
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    made.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return made


async def test_cells_are_replaced_inserted_and_deleted(bench: Bench, book: Path) -> None:
    before = book.read_text()
    await bench.call("edit_notebook", path="book.ipynb", cell=2, source="y\nz")
    replaced = json.loads(book.read_text())["cells"][1]
    assert (replaced["source"], replaced["outputs"], replaced["execution_count"]) == (["y\n", "z"], [], None)
    assert book.read_text().splitlines()[:9] == before.splitlines()[:9]
    said = await bench.call("edit_notebook", path="book.ipynb", cell=3, source="print()", insert="code")
    assert "has 3 cells now" in said.text
    assert sorted(json.loads(book.read_text())["cells"][2]) == sorted(replaced)
    await bench.call("edit_notebook", path="book.ipynb", cell=1)
    assert [cell["source"] for cell in json.loads(book.read_text())["cells"]] == [["y\n", "z"], ["print()"]]
    assert "no cell 9" in (await bench.call("edit_notebook", path="book.ipynb", cell=9)).text


async def test_what_is_no_notebook_is_not_edited(bench: Bench, workspace: Path) -> None:
    (workspace / "x.ipynb").write_text("[" * 100_000)
    assert "not a notebook" in (await bench.call("edit_notebook", path="x.ipynb", cell=1)).text
    (workspace / "x.ipynb").write_text("{}")
    assert "not a notebook" in (await bench.call("edit_notebook", path="./x.ipynb", cell=1)).text
