"""`read_file` beyond text, `extract_archive`, `send_file`, and D1 and D9 for everything that opens files."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from operant.ext.tools.settings import ToolsSettings
from operant.ext.tools.setup import setup
from tests.ext.tools.conftest import Bench, FakeHost
from tests.kit import papers


async def test_an_office_file_is_read_like_text(bench: Bench, workspace: Path) -> None:
    (workspace / "plan.docx").write_bytes(papers.docx())
    assert (await bench.call("read_file", path="plan.docx")).text == "# Plan\none\ttwo\nthree\n- item\n| a | b |"
    part = await bench.call("read_file", path="plan.docx", offset=2, limit=1)
    assert part.text == "[plan.docx: lines 2 to 2 of 5]\none\ttwo\n"


async def test_a_pdf_is_read_by_pages(bench: Bench, workspace: Path) -> None:
    (workspace / "a.pdf").write_bytes(papers.pdf("one", "two", "three"))
    whole = await bench.call("read_file", path="a.pdf")
    assert whole.text == "[a.pdf: 3 pages]\n--- page 1\none\n--- page 2\ntwo\n--- page 3\nthree", whole
    part = await bench.call("read_file", path="a.pdf", offset=2, limit=1)
    assert part.text == "[a.pdf: pages 2 to 2 of 3]\n--- page 2\ntwo"
    assert "no page 9" in (await bench.call("read_file", path="a.pdf", offset=9)).text
    (workspace / "scan.pdf").write_bytes(papers.pdf("", ""))
    assert "such as scans" in (await bench.call("read_file", path="scan.pdf")).text


async def test_a_picture_comes_as_a_picture(bench: Bench, workspace: Path) -> None:
    data = papers.png(40, 30)
    (workspace / "a.png").write_bytes(data)
    said = await bench.call("read_file", path="a.png")
    assert said.text.startswith("[a.png: PNG, 40")
    (blob,) = said.blobs
    assert (blob.media_type, blob.name) == ("image/png", "a.png")
    assert await bench.host.blobs.get_blob(blob.digest) == data


async def test_a_document_that_cannot_be_read_is_told(bench: Bench, workspace: Path) -> None:
    (workspace / "a.docx").write_bytes(b"PK\x03\x04" + bytes(100))
    said = await bench.call("read_file", path="a.docx")
    assert (said.outcome, said.text.startswith("a.docx: It is damaged")) == ("error", True)
    (workspace / "a.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(10))
    assert (await bench.call("read_file", path="a.7z")).text == "a.7z is a 7z archive (16 bytes)."


async def test_d8_an_archive_is_listed_and_not_unpacked(bench: Bench, workspace: Path) -> None:
    (workspace / "a.zip").write_bytes(papers.zip_of({"../evil": "x", "fine": "y"}))
    said = await bench.call("read_file", path="a.zip")
    assert "../evil  [refused: it leads out of the directory]" in said.text
    assert sorted(path.name for path in workspace.parent.rglob("*")) == ["a.zip", "shared", "workspace"]


async def test_an_archive_is_unpacked_and_that_is_undone(bench: Bench, workspace: Path) -> None:
    (workspace / "a.zip").write_bytes(papers.zip_of({"one": "1", "deep/two": "2"}))
    said = await bench.call("extract_archive", path="a.zip", into="made")
    assert said.text == "Unpacked 2 files into made."
    assert (workspace / "made/deep/two").read_text() == "2"
    again = await bench.call("extract_archive", path="a.zip", into="made")
    assert (again.outcome, "not empty" in again.text) == ("error", True)
    assert (await bench.call("undo_changes")).text == "Deleted made/one.\nDeleted made/deep/two."
    assert not list(workspace.rglob("two"))


async def test_d8_a_hostile_archive_is_refused(bench: Bench, workspace: Path) -> None:
    (workspace / "a.zip").write_bytes(papers.zip_of({"fine": "y", "../evil": "x"}))
    said = await bench.call("extract_archive", path="a.zip", into="made")
    assert said.text == "a.zip: It is not unpacked: ../evil leads out of the directory."
    (workspace / "b.zip").write_bytes(papers.zip_of({"fine": "y", ".env": "x"}))
    assert "protected" in (await bench.call("extract_archive", path="b.zip", into="made")).text
    assert not (workspace / "made").exists()


async def test_files_are_found_by_a_pattern_at_any_depth(bench: Bench, workspace: Path) -> None:
    for name in ("a.py", "deep/er/still/b.py", "deep/c.ts"):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert (await bench.call("list_files", glob="*.py")).text == "a.py\ndeep/er/still/b.py"
    assert (await bench.call("list_files", glob="deep/**/*.py")).text == "deep/er/still/b.py"
    assert (await bench.call("list_files", glob="*.md")).text == "[empty]"


# ---------------------------------------------------------------------------- send_file


async def test_a_file_is_sent_to_the_person(bench: Bench, workspace: Path) -> None:
    (workspace / "out").mkdir()
    (workspace / "out/report.pdf").write_bytes(papers.pdf("x"))
    said = await bench.call("send_file", path="out/report.pdf", caption="Here.", key="s1")
    assert said.text.startswith("out/report.pdf is on its way: application/pdf, ")
    (sent,) = bench.host.sent
    assert (sent.session, sent.parts[0].name, sent.parts[1].text) == ("s1", "report.pdf", "Here.")  # type: ignore[union-attr]
    await bench.call("send_file", path="out/report.pdf", caption="Here.", key="s1", repeated=True)
    assert len(bench.host.sent) == 1


async def test_what_cannot_be_sent_is_not(workspace: Path, secret: Path) -> None:
    host = FakeHost()
    (workspace / "large").write_bytes(bytes(2000))
    (workspace / "empty").touch()
    (workspace / "link").symlink_to(secret)
    async with setup(host, ToolsSettings(max_sent_bytes=1000)):  # type: ignore[arg-type]
        bench = Bench(workspace, host)
        for path, why in (("large", "too large"), ("empty", "is empty"), ("link", "leads out"), ("no", "not exist")):
            said = await bench.call("send_file", path=path)
            assert (said.outcome, why in said.text) == ("error", True), said
        assert "characters" in (await bench.call("send_file", path="large", caption="x" * 2000)).text
    assert host.sent == []


# ---------------------------------------------------------------------------- D1, D9

READERS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {}),
    ("edit_file", {"old": "a", "new": "b"}),
    ("delete_file", {}),
    ("move_file", {"to": "new"}),
    ("write_file", {"content": "x"}),
    ("edit_notebook", {"cell": 1}),
    ("send_file", {}),
    ("extract_archive", {"into": "new"}),
]


@pytest.mark.parametrize(("tool", "arguments"), READERS)
@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "/etc/passwd", "~root/x", "$HOME/x", "file:///etc/passwd", "/proc/self/root/etc/passwd",
     "/proc/self/environ", "/dev/fd/0", "/dev/zero"],
)  # fmt: skip
async def test_d1_paths_that_lead_elsewhere(bench: Bench, tool: str, arguments: dict[str, Any], path: str) -> None:
    said = await bench.call(tool, path=path, **arguments)
    assert said.outcome == "error"
    assert "workspace" in said.text


@pytest.mark.parametrize(("tool", "arguments"), READERS)
@pytest.mark.parametrize("name", ["pipe", "pipe.pdf", "sparse.pdf", "sparse.txt", "directory.zip", "zero.png"])
async def test_d9_what_would_never_end_is_refused_within_two_seconds(
    bench: Bench, workspace: Path, tool: str, arguments: dict[str, Any], name: str
) -> None:
    there = workspace / name
    if name.startswith("pipe"):
        os.mkfifo(there)
    elif name.startswith("directory"):
        there.mkdir()
    elif name.startswith("zero"):
        try:
            os.mknod(there, 0o020666, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("making a device takes root")
    else:
        with there.open("wb") as sparse:
            sparse.write(b"%PDF-1.4\n")
            sparse.truncate(100 * 2**30)
    begun = time.monotonic()
    said = await bench.call(tool, path=name, **arguments)
    assert said.outcome == "error", said
    assert time.monotonic() - begun < 2
    assert not (workspace / "new").exists()
