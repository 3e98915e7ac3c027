"""A home for a test, and one with a running daemon for many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.process import Operant


@pytest.fixture
def operant(tmp_path: Path) -> Operant:
    """Return the command on a fresh home."""
    return Operant(tmp_path / "home")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operant]:
    """Return the command on a home whose daemon runs and whose shell asks nothing."""
    command = Operant(tmp_path_factory.mktemp("served") / "home")
    command.allow(shell="allow", write_file="allow")
    with command.serving():
        yield command
