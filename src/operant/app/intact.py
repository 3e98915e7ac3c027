"""Whether the installed package is still what the installer wrote.

The standard library alone: the supervisor asks before it starts the daemon again. What changed since it began must be
what the list of the installation (`RECORD`) says, as after an upgrade; anything else is not run. A source tree that is
run in place has no such list, and nothing is found there. Whoever can write the package can write the list as well:
this finds changes by whom no installer sent, it is no signature.
"""

from __future__ import annotations

import base64
import csv
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_CODE = (".py", ".so", ".pyd")

Sums = dict[str, str]
"""Sums of files by their path below the folder of packages."""


def sums_of(package: Path = PACKAGE) -> Sums:
    """Return the sums of all code of the package."""
    files = sorted(path for path in package.rglob("*") if path.suffix in _CODE)
    return {path.relative_to(package.parent).as_posix(): _sum(path) for path in files}


def objection(before: Sums, package: Path = PACKAGE) -> str:
    """Return which file is not what was installed, or an empty text."""
    now = sums_of(package)
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not changed:
        return ""
    listed = _listed(package)
    if not listed:
        return ""
    foreign = [name for name in changed if now.get(name) != listed.get(name)]
    return foreign[0] if foreign else ""


def _listed(package: Path) -> Sums:
    """Return the sums of the package's code that the installer wrote down."""
    rows = [row for record in package.parent.glob(f"{package.name}-*.dist-info/RECORD") for row in _rows(record)]
    ours = (row for row in rows if len(row) > 1 and row[0].startswith(f"{package.name}/") and row[0].endswith(_CODE))
    return {row[0]: row[1].removeprefix("sha256=") for row in ours}


def _rows(record: Path) -> list[list[str]]:
    with record.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def _sum(path: Path) -> str:
    try:
        digest = hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return "unreadable"
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
