"""Agents as their files stand now."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from operant.app.agents import AgentFiles, add_agent, remove_agent
from operant.app.config import AgentSettings, Config, Defaults, load_config
from operant.app.extensions import find_extensions
from operant.app.home import Home
from operant.kernel.errors import Conflict, Invalid, NotFound
from operant.kernel.ports import Clock
from operant.sdk.testing.fakes import ManualClock


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.init()
    return home


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def files(home: Home, clock: Clock, config: Config | None = None) -> AgentFiles:
    return AgentFiles(home, config or Config(), clock, {"MODEL": "found/one"}.get)


def write(home: Home, text: str, name: str = "operant", file: str = "AGENT.md") -> Path:
    path = home.agents / name / file
    path.write_text(text, "utf-8")
    return path


def test_the_prompt_is_joined_from_what_is_there_and_not_empty(home: Home, clock: ManualClock) -> None:
    home.preamble.write_text("First.\n", "utf-8")
    write(home, "---\nmax_steps: 7\n---\nSecond.\n")
    write(home, "Third.", file="workspace/SOUL.md")
    write(home, "  \n", file="workspace/RULES.md")
    (home.agents / "operant" / "workspace" / "USER.md").unlink()
    agent = files(home, clock).get("")
    assert agent.prompt == "First.\n\nSecond.\n\nThird."
    assert agent.limits.max_steps == 7
    assert agent.workspace == str(home.agents / "operant" / "workspace")


def test_the_file_wins_over_the_configuration_and_that_over_defaults(home: Home, clock: ManualClock) -> None:
    config = Config(
        defaults=Defaults(max_steps=3, timezone="Europe/Berlin"),
        agents={"operant": AgentSettings(max_steps=4, approval={"shell": "ask"}, timezone="Europe/Berlin")},
    )
    write(home, "---\nmodels: ['${MODEL}']\nmax_steps: 5\napproval: {write_file: deny}\n---\n")
    agent = files(home, clock, config).get("operant")
    assert agent.limits.max_steps == 5
    assert agent.models == ("found/one",)
    assert agent.approval == {"shell": "ask", "write_file": "deny"}
    assert agent.timezone == "Europe/Berlin"


def test_an_edit_counts_after_a_moment_and_not_within_a_turn(home: Home, clock: ManualClock) -> None:
    agents = files(home, clock)
    before = agents.get("")
    write(home, "Another body.")
    assert agents.get("") is before
    clock.advance(1)
    assert "Another body." in agents.get("").prompt
    clock.advance(1)
    assert agents.get("") is agents.get("")


def test_an_invalid_edit_is_reported_and_the_last_valid_version_stays(home: Home, clock: ManualClock) -> None:
    agents = files(home, clock)
    write(home, "---\nmax_steps: 7\n---\nGood.")
    good = agents.get("")
    for text, words in [
        ("---\nmax_stepps: 8\n---\n", "AGENT.md:2: max_stepps: there is no such key; did you mean max_steps?"),
        ("---\nmax_steps: [\n---\n", "AGENT.md:3: this is not YAML"),
        ("---\nmax_steps: 8\n", "AGENT.md:1: the frontmatter that begins here is never closed"),
    ]:
        write(home, text)
        clock.advance(1)
        assert agents.get("") is good
        (problem,) = agents.problems()
        assert problem.where == "agents/operant"
        assert problem.sentence.startswith(words)
    write(home, "---\nmax_steps: 8\n---\nGood.")
    clock.advance(1)
    assert agents.get("").limits.max_steps == 8
    assert agents.problems() == ()


def test_an_edit_of_the_settings_counts_too_and_one_that_is_not_valid_does_not(home: Home, clock: ManualClock) -> None:
    home.config.write_text("agents: {operant: {approval: {shell: allow}}}\n", "utf-8")
    read = partial(load_config, home.path, {}, find_extensions().extensions)
    agents = AgentFiles(home, read(), clock, {}.get, read)
    assert agents.get("").approval == {"shell": "allow"}
    home.config.write_text("agents: {operant: {approval: {shell: deny}}, other: {}}\n", "utf-8")
    clock.advance(1)
    assert agents.get("").approval == {"shell": "deny"}
    assert [one.name for one in agents.list()] == ["operant", "other"]
    home.config.write_text("agents: {operant: {aproval: {shell: allow}}}\n", "utf-8")
    clock.advance(1)
    assert agents.get("").approval == {"shell": "deny"}
    (problem,) = agents.problems()
    assert (problem.where, problem.sentence[:15]) == ("settings", "operant.yaml:1:")
    home.config.write_text("sandbox: {memory_mb: 100}\n", "utf-8")
    clock.advance(1)
    assert agents.get("").approval == {} and agents.problems() == ()
    assert agents.late() == "operant.yaml: sandbox: changed, and counts from the next start on"
    home.config.write_text("services: {configuration: {guard: {word: rm}}}\n", "utf-8")
    clock.advance(1)
    assert agents.late() == ""  # who runs is told of it
    home.config.write_text("services: {trusted: [guard]}\n", "utf-8")
    clock.advance(1)
    assert agents.late() == "operant.yaml: services: changed, and counts from the next start on"


def test_an_agent_whose_file_was_never_valid_may_use_no_tools(home: Home, clock: ManualClock) -> None:
    write(home, "---\npermissions: {denny: [shell]}\n---\n")
    agents = files(home, clock)
    assert agents.get("").permissions.tools == ()
    assert "did you mean deny?" in agents.problems()[0].sentence


@pytest.mark.parametrize("plant", ["link", "pipe", "bytes", "large"])
def test_what_an_agent_plants_in_its_workspace_does_not_reach_its_prompt(
    home: Home, clock: ManualClock, tmp_path: Path, plant: str
) -> None:
    agents = files(home, clock)
    before = agents.get("")
    soul = home.agents / "operant" / "workspace" / "SOUL.md"
    soul.unlink()
    if plant == "link":
        (tmp_path / "secret").write_text("CANARY", "utf-8")
        soul.symlink_to(tmp_path / "secret")
    elif plant == "pipe":
        os.mkfifo(soul)
    else:
        soul.write_bytes(b"\xff\xfe" if plant == "bytes" else b"x" * 300_000)
    clock.advance(1)
    assert agents.get("") is before
    assert "SOUL.md" in agents.problems()[0].sentence


def test_agents_come_and_go_with_their_files(home: Home, clock: ManualClock) -> None:
    agents = files(home, clock)
    add_agent(home, "writer", description="Writes: a lot", models=["a/b"])
    writer = agents.get("writer")
    assert (writer.description, writer.models) == ("Writes: a lot", ("a/b",))
    assert [agent.name for agent in agents.list()] == ["operant", "writer"]
    aside = remove_agent(home, "writer", now=5)
    assert (aside / "AGENT.md").exists()
    clock.advance(1)
    with pytest.raises(NotFound):
        agents.get("writer")
    assert [agent.name for agent in agents.list()] == ["operant"]


@pytest.mark.parametrize("name", ["..", "a/b", "", "A", ".trash", "x" * 65, "ü"])
def test_a_name_is_never_a_path(home: Home, clock: ManualClock, name: str) -> None:
    with pytest.raises(Invalid):
        add_agent(home, name)
    with pytest.raises(NotFound):
        remove_agent(home, name, now=0)
    if name:
        with pytest.raises(NotFound):
            files(home, clock).get(name)


def test_a_taken_name_is_refused(home: Home) -> None:
    with pytest.raises(Conflict):
        add_agent(home, "operant")
