"""Profiles, and the boundary of all agents."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.app.agents import AgentFiles
from operant.app.config import Config, load_config
from operant.app.home import Home
from operant.app.patterns import narrow
from operant.app.profiles import PROFILES
from operant.kernel.errors import Invalid
from operant.kernel.gate import permitted
from operant.kernel.records import Agent, Permissions
from operant.sdk.testing.fakes import ManualClock

PATTERNS = st.lists(st.text("ab_*?", min_size=1, max_size=5), max_size=4).map(tuple)
NAMES = st.text("ab_", min_size=1, max_size=6)


def agents(tmp_path: Path, text: str) -> tuple[Home, AgentFiles]:
    home = Home(tmp_path / "home")
    home.init()
    home.config.write_text(text)
    config: Config = load_config(home.path, {})
    return home, AgentFiles(home, config, ManualClock(), config.find)


def may(agent: Agent, *names: str) -> list[bool]:
    return [permitted(agent, name) for name in names]


def test_a_profile_is_a_set_of_tools_and_the_agents_own_rules_take_from_it(tmp_path: Path) -> None:
    text = """
defaults: {permissions: {profile: messaging}}
agents:
  coder: {permissions: {profile: coding, deny: [web_*]}}
  quiet: {permissions: {profile: minimal}}
  reader: {permissions: {tools: ["read_*"]}}
  own: {permissions: {profile: full}}
"""
    _, files = agents(tmp_path, text)
    some = ("shell", "read_file", "web_fetch", "search_history", "anything")
    assert may(files.get("operant"), *some) == [False, True, True, True, False]
    assert may(files.get("coder"), *some) == [True, True, False, True, False]
    assert may(files.get("quiet"), *some) == [False, False, False, True, False]
    assert may(files.get("reader"), *some, "read_process") == [False, True, False, False, False, False]
    assert may(files.get("own"), *some) == [True] * 5


def test_profiles_of_ones_own_and_what_is_inherited(tmp_path: Path) -> None:
    text = """
defaults:
  profiles: {librarian: [read_*, list_files]}
  permissions: {profile: librarian, deny: [read_output]}
agents: {second: {description: Inherits all.}}
"""
    home, files = agents(tmp_path, text)
    for name in ("operant", "second"):
        assert may(files.get(name), "read_file", "list_files", "read_output", "shell") == [True, True, False, False]
    (home.agents / "operant" / "AGENT.md").write_text("---\npermissions: {profile: full, deny: []}\n---\n")
    files.changed("operant")
    assert may(files.get("operant"), "shell", "read_output") == [True, True]


def test_no_file_of_an_agent_reaches_beyond_the_boundary(tmp_path: Path) -> None:
    text = "defaults: {boundary: {tools: ['read_*', shell], deny: [read_process], skills: ['s*']}}\n"
    home, files = agents(tmp_path, text)
    words = "---\npermissions: {profile: full, tools: ['*'], skills: ['*']}\n---\n"
    (home.agents / "operant" / "AGENT.md").write_text(words)
    agent = files.get("operant")
    assert may(agent, "shell", "read_file", "read_process", "write_file") == [True, True, False, False]
    assert agent.permissions.skills == ("s*",)
    assert may(files.get("operant/worker(write_file,shell)"), "shell", "write_file", "read_file") == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("defaults: {permissions: {profile: codin}}", "operant.yaml:1: defaults.permissions.profile: there is no"),
        ("agents:\n  a: {permissions: {profile: x}}", "operant.yaml:2: agents.a.permissions.profile: there is no"),
    ],
)
def test_a_profile_that_is_not_there_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        agents(tmp_path, text)
    assert caught.value.sentence.startswith(said)
    assert "\n" not in caught.value.sentence
    assert "coding" in caught.value.sentence


def test_one_that_an_agents_file_names_keeps_the_last_valid_version(tmp_path: Path) -> None:
    home, files = agents(tmp_path, "defaults: {permissions: {profile: minimal}}")
    (home.agents / "operant" / "AGENT.md").write_text("---\npermissions: {profile: nothing}\n---\n")
    assert may(files.get("operant"), "search_history", "shell") == [False, False]
    assert "no profile 'nothing'" in files.problems()[0].sentence


@given(PATTERNS, PATTERNS, NAMES)
def test_what_two_rules_allow_is_never_more_than_either_allows(
    one: tuple[str, ...], other: tuple[str, ...], name: str
) -> None:
    both = narrow(Permissions(tools=one), tools=other).tools
    if any(fnmatchcase(name, rule) for rule in both):
        assert any(fnmatchcase(name, rule) for rule in one)
        assert any(fnmatchcase(name, rule) for rule in other)


def test_profiles_are_each_within_the_next() -> None:
    order = [PROFILES[name] for name in ("minimal", "messaging", "coding", "full")]
    for small, large in pairwise(order):
        assert narrow(Permissions(tools=small), tools=large).tools == small
