"""What is in a folder is read once, and again as soon as anything about it has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from operant.ext.services.contents import MOST_BYTES, Contents, digest_of
from operant.ext.services.stash import Stash
from operant.kit.clock import SystemClock
from operant.sdk import Invalid
from operant.sdk.testing.fakes import ManualClock

SIZE = 4 << 20
needs_proc = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux says how much was read")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "skill"
    (made / "sub").mkdir(parents=True)
    (made / "big.bin").write_bytes(os.urandom(SIZE))
    (made / "sub" / "small.py").write_text("print(1)\n")
    return made


def later(seconds: float = 60) -> ManualClock:
    """Return a clock by which what was just written is old."""
    return ManualClock(SystemClock().now() + int(seconds * 1e6))


def read_by(contents: Contents, folder: Path, declared: bytes = b"") -> int:
    """Return how many bytes were read to find out what is there, which has to be right."""
    before = _read()
    digest = contents.digest(folder, declared)
    after = _read()
    assert digest == digest_of(folder, declared)
    return after - before


def _read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


@needs_proc
def test_a_folder_that_stays_as_it_is_is_read_once(folder: Path) -> None:
    contents = Contents(later())
    assert read_by(contents, folder) >= SIZE
    assert read_by(contents, folder) < SIZE
    assert read_by(contents, folder, b"other words") >= SIZE
    contents.forget(folder)
    assert read_by(contents, folder) >= SIZE


@needs_proc
def test_what_was_just_written_is_read_again(folder: Path) -> None:
    """Clocks of file systems are coarse: a second change may look like the first."""
    contents = Contents(SystemClock())
    assert read_by(contents, folder) >= SIZE
    assert read_by(contents, folder) >= SIZE


@pytest.mark.parametrize("change", ["content", "mode", "name", "new", "gone", "swapped", "folder"])
def test_every_change_counts(folder: Path, change: str) -> None:
    contents = Contents(later())
    small, other = folder / "sub" / "small.py", folder / "sub" / "other.py"
    before = contents.digest(folder, b"")
    stat = small.stat()
    if change == "content":
        small.write_text("print(2)\n")
        os.utime(small, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif change == "mode":
        small.chmod(0o755)
    elif change == "name":
        small.rename(other)
    elif change == "new":
        other.touch()
    elif change == "gone":
        small.unlink()
    elif change == "swapped":
        other.write_text("print(3)\n")
        os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        other.replace(small)
    elif change == "folder":
        (folder / "sub").rename(folder / "sup")
    assert contents.digest(folder, b"") == digest_of(folder) != before


def test_a_link_and_a_folder_that_is_too_large_are_refused_each_time(folder: Path) -> None:
    contents = Contents(later())
    contents.digest(folder, b"")
    with (folder / "big.bin").open("r+b") as file:
        file.truncate(MOST_BYTES + 1)
    for _ in range(2):
        with pytest.raises(Invalid, match="more than"):
            contents.digest(folder, b"")
    (folder / "big.bin").unlink()
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(Invalid, match="is a link"):
        contents.digest(folder, b"")


def test_what_is_copied_for_a_start_is_always_read(folder: Path, tmp_path: Path) -> None:
    digest = Contents(later()).digest(folder, b"")
    (folder / "sub" / "small.py").write_text("print(2)\n")
    with pytest.raises(Invalid, match="changed while it was copied"):
        Stash(tmp_path / "stash").keep(folder, digest)
