"""The tool `edit_file`: exactly what was asked, or nothing (D12)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.ext.tools.conftest import Bench


@pytest.fixture
def code(workspace: Path) -> Path:
    made = workspace / "code.py"
    made.write_text("a = 1\nb = 2\na = 1\n")
    return made


async def test_an_edit_shows_what_changed(bench: Bench, code: Path) -> None:
    said = await bench.call("edit_file", path="code.py", old="b = 2", new="b = 3")
    assert said.text == "Edited code.py:\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 3\n a = 1"
    assert code.read_text() == "a = 1\nb = 3\na = 1\n"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("a = 1", "a = 9", "2 times"),
        ("c = 1", "x", "does not have this text"),
        ("", "x", "is empty"),
        ("b = 2", "b = 2", "the same"),
    ],
)
async def test_what_is_not_clear_changes_nothing(bench: Bench, code: Path, old: str, new: str, why: str) -> None:
    before = code.stat()
    said = await bench.call("edit_file", path="code.py", old=old, new=new)
    assert (said.outcome, why in said.text) == ("error", True)
    assert code.stat() == before


async def test_every_occurrence_is_changed_when_asked(bench: Bench, code: Path) -> None:
    assert (await bench.call("edit_file", path="code.py", old="a = 1", new="a = 9", all=True)).outcome == "ok"
    assert code.read_text() == "a = 9\nb = 2\na = 9\n"


async def test_d12_a_file_that_changed_since_it_was_read_is_a_conflict(bench: Bench, code: Path) -> None:
    await bench.call("read_file", path="code.py")
    code.write_text("by hand\nb = 2\n")
    said = await bench.call("edit_file", path="./code.py", old="b = 2", new="b = 3")
    assert (said.outcome, "changed since" in said.text) == ("error", True)
    assert code.read_text() == "by hand\nb = 2\n"
    other = await bench.call("edit_file", session="s2", path="code.py", old="b = 2", new="b = 4")
    assert other.outcome == "ok"
    await bench.call("read_file", path="code.py")
    assert (await bench.call("edit_file", path="code.py", old="b = 4", new="b = 5")).outcome == "ok"


async def test_own_edits_are_no_conflict(bench: Bench, code: Path) -> None:
    for number in range(2, 6):
        said = await bench.call("edit_file", path="code.py", old=f"b = {number}", new=f"b = {number + 1}")
        assert said.outcome == "ok"


async def test_an_edit_repeated_after_a_crash_is_done_once(bench: Bench, code: Path) -> None:
    """The file was written, and the process died before the result was on record."""
    edit: dict[str, Any] = {"path": "code.py", "old": "b = 2", "new": "b = 2\nb = 2"}
    await bench.call("read_file", path="code.py")
    seen = dict(bench.host.values)
    await bench.call("edit_file", key="k7", **edit)
    after = code.read_text()
    bench.host.values.update(seen)  # what was to be kept after the write was not
    said = await bench.call("edit_file", key="k7", repeated=True, **edit)
    assert (said.outcome, code.read_text()) == ("ok", after)
    assert (await bench.call("edit_file", path="code.py", old="a = 1\nb", new="c\nb")).outcome == "ok"


async def test_an_edit_that_had_not_happened_is_repeated(bench: Bench, code: Path) -> None:
    said = await bench.call("edit_file", key="k8", repeated=True, path="code.py", old="b = 2", new="b = 3")
    assert said.text.startswith("Edited code.py:\n@@")


async def test_d12_a_change_between_reading_and_writing_is_a_conflict(bench: Bench, code: Path) -> None:
    """Somebody writes at the last moment: while the intention is being kept."""
    bench.host.on_set = lambda key: key.startswith("change:") and code.write_text("somebody else\n")
    said = await bench.call("edit_file", path="code.py", old="b = 2", new="b = 3")
    assert (said.outcome, "changed since" in said.text) == ("error", True)
    assert code.read_text() == "somebody else\n"


async def test_line_ends_and_odd_bytes_stay_as_they_are(bench: Bench, workspace: Path) -> None:
    """Units: bytes, not characters."""
    old = workspace / "dos.txt"
    old.write_bytes(b"\xff\xfe-not-really \xc3\xbc\r\none\r\ntwo\r\n"[2:] + b"\xff")
    said = await bench.call("edit_file", path="dos.txt", old="one\ntwo", new="1\n2\n3")
    assert said.outcome == "ok"
    assert old.read_bytes() == b"-not-really \xc3\xbc\r\n1\r\n2\r\n3\r\n\xff"


async def test_a_binary_file_is_not_edited(bench: Bench, workspace: Path) -> None:
    (workspace / "data").write_bytes(b"a\0b")
    assert (await bench.call("edit_file", path="data", old="a", new="c")).outcome == "error"


async def test_a_cancelled_edit_is_whole_or_not_at_all(bench: Bench, code: Path) -> None:
    code.write_text("x" * 2_000_000 + "END")
    for turns in range(0, 40, 4):
        async with asyncio.TaskGroup() as group:
            edit: dict[str, Any] = {"path": "code.py", "old": "x" * 100 + "END", "new": "y" * 50 + "END"}
            task = group.create_task(bench.call("edit_file", **edit))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
        after = code.read_text()
        assert after.endswith("END")
        assert sorted(path.name for path in code.parent.iterdir()) == ["code.py"]
        code.write_text("x" * 2_000_000 + "END")
        bench.host.values.clear()
