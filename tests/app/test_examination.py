"""What `operant doctor` says about the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.app import examination
from operant.app.home import Home
from operant.app.means import Means
from operant.kernel.records import Agent


@pytest.mark.parametrize(
    ("found", "state", "words", "hint"),
    [
        (Means("bubblewrap"), "ok", "run in bubblewrap", ""),
        (Means("landlock", "Bubblewrap is not installed.", "Install it."), "warn", "weaker sandbox", "Install it."),
        (
            Means("none", "There is nothing.", "Install it."),
            "fail",
            "no command is run: There is nothing.",
            "Install it.",
        ),
    ],
)
async def test_the_kind_of_sandbox_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Means, state: str, words: str, hint: str
) -> None:
    tried: list[tuple[str, ...]] = []

    async def find(by: tuple[str, ...]) -> Means:
        tried.append(by)
        return found

    monkeypatch.setattr("operant.app.examination.find_means", find)
    (tmp_path / "operant.yaml").write_text("sandbox: {by: [landlock]}\n")
    (check,) = await examination._sandbox(Home(tmp_path), {})
    assert (check.name, check.state, check.hint) == ("sandbox", state, hint)
    assert words in check.text
    assert tried == [("landlock",)]


def test_an_agent_without_a_sandbox_is_named() -> None:
    agents = [Agent(name="safe"), Agent(name="bold", sandbox=False)]
    (check,) = examination._unconfined(agents)
    assert check.state == "warn"
    assert "agent bold" in check.text
