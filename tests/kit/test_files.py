"""Private files are whole or not there, and no link leads them elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.kit.files import write_private
from operant.kit.token import own_token


def test_a_file_is_replaced_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("before")
    path.chmod(0o644)
    write_private(path, b"after")
    assert path.read_bytes() == b"after"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("theirs")
    path = tmp_path / "a"
    path.symlink_to(other)
    write_private(path, b"ours")
    assert other.read_text() == "theirs"
    assert not path.is_symlink()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    with pytest.raises(OSError, match=r".*"):
        write_private(path, b"x")
    assert list(tmp_path.iterdir()) == [path]


def test_a_token_is_made_once_and_a_broken_one_anew(tmp_path: Path) -> None:
    path = tmp_path / "state" / "token"
    first = own_token(path)
    assert own_token(path) == first and len(first) > 40
    path.write_text("short")
    assert own_token(path) != first
