"""A package that somebody changed is not started again; one that an installer changed is."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from operant.app.intact import PACKAGE, objection, sums_of

FILES = {"__init__.py": "", "kernel/gate.py": "closed = True\n", "ext/guard/__init__.py": "on = True\n"}


def lay(site: Path, files: Mapping[str, str], *, listed: bool = True) -> Path:
    """Install a package as an installer does."""
    package = site / "operant"
    rows: list[str] = []
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"operant/{name},sha256={digest},{len(text)}")
    (site / "operant-1.0.dist-info").mkdir(exist_ok=True)
    (site / "operant-1.0.dist-info" / "RECORD").write_text("\n".join(rows) if listed else "operant.pth,,\n")
    return package


def test_one_that_nobody_touched_is_sound(tmp_path: Path) -> None:
    package = lay(tmp_path, FILES)
    assert objection(sums_of(package), package) == ""


@pytest.mark.parametrize("name", ["kernel/gate.py", "ext/evil/__init__.py"])
def test_code_that_was_changed_or_added_is_named(name: str, tmp_path: Path) -> None:
    package = lay(tmp_path, FILES)
    before = sums_of(package)
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("closed = False\n")
    assert objection(before, package) == f"operant/{name}"


def test_code_that_was_taken_away_is_named(tmp_path: Path) -> None:
    package = lay(tmp_path, FILES)
    before = sums_of(package)
    (package / "ext/guard/__init__.py").unlink()
    assert objection(before, package) == "operant/ext/guard/__init__.py"


def test_a_feature_that_was_removed_before_is_not_missed(tmp_path: Path) -> None:
    package = lay(tmp_path, FILES)
    (package / "ext/guard/__init__.py").unlink()
    assert objection(sums_of(package), package) == ""


def test_an_upgrade_is_what_its_own_list_says(tmp_path: Path) -> None:
    package = lay(tmp_path, FILES)
    before = sums_of(package)
    lay(tmp_path, {**FILES, "kernel/gate.py": "closed = 2\n", "ext/new/__init__.py": "new = True\n"})
    assert objection(before, package) == ""


def test_a_source_tree_has_no_list_and_nothing_is_found(tmp_path: Path) -> None:
    package = lay(tmp_path, FILES, listed=False)
    before = sums_of(package)
    (package / "kernel/gate.py").write_text("closed = False\n")
    assert objection(before, package) == ""


def test_our_own_package_is_looked_at_in_a_moment() -> None:
    sums = sums_of()
    assert "operant/app/intact.py" in sums
    assert PACKAGE.name == "operant"
