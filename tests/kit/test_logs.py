"""The log file."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from operant.kit import logs
from operant.kit.logs import JsonLog
from operant.kit.secret import Secret

log = logging.getLogger("operant.test")


def test_a_line_is_one_json_object_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "operant.log"
    with JsonLog(path, lambda: 7) as file:
        file.hide([Secret("swordfish"), Secret("")])
        try:
            raise ValueError("swordfish\nsecond line")
        except ValueError:
            log.exception("it is %s", "swordfish")
    (line,) = path.read_text("utf-8").splitlines()
    said = json.loads(line)
    assert (said["at"], said["level"], said["part"], said["message"]) == (7, "error", "operant.test", "it is ***")
    assert "ValueError: ***" in said["traceback"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_file_is_put_aside_and_only_so_many_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 300)
    with JsonLog(tmp_path / "x.log", lambda: 7):
        for number in range(60):
            log.info("line %d", number)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["x.log", *(f"x.log.{number}" for number in range(1, logs.KEPT + 1))]
    assert all(path.stat().st_size <= 300 for path in tmp_path.iterdir())
    assert "line 59" in (tmp_path / "x.log").read_text("utf-8")


def test_a_disk_that_refuses_the_file_costs_lines_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "x.log").mkdir()
    with JsonLog(tmp_path / "x.log", lambda: 7):
        log.info("lost")
        (tmp_path / "x.log").rmdir()
        log.info("kept")
    assert "kept" in (tmp_path / "x.log").read_text("utf-8")


def test_nothing_is_written_once_it_is_closed(tmp_path: Path) -> None:
    with JsonLog(tmp_path / "x.log", lambda: 7):
        log.info("one")
    log.info("two")
    assert "two" not in (tmp_path / "x.log").read_text("utf-8")
