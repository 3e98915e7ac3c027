"""Agents made of others: their names say what they may do, and it is never more than those before them may."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.app.agents import AgentFiles
from operant.app.config import load_config
from operant.app.home import Home
from operant.app.lineage import DEEPEST
from operant.kernel.errors import NotFound
from operant.kernel.gate import permitted
from operant.sdk.testing.fakes import ManualClock

CONFIG = """
defaults: {models: [a/one]}
agents:
  operant:
    permissions: {tools: ["read_*", shell, spawn_agent], deny: [read_output], skills: [sum*]}
    approval: {shell: ask}
    network: [example.org]
    limits: {turn_tokens: 5000}
  researcher:
    models: [b/two]
    permissions: {tools: ["*"], deny: [read_mail]}
    approval: {shell: allow}
    network: full
    sandbox: false
"""
TOOLS = ("read_file", "read_mail", "read_output", "shell", "spawn_agent", "write_file")
STEPS = st.lists(
    st.builds(
        lambda helper, tools: f"{helper}({','.join(tools)})" if tools else helper,
        st.sampled_from(["worker", "critic", "scholar"]),
        st.lists(st.sampled_from([*TOOLS, "*", "read_*", "s*"]), max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> AgentFiles:
    home = Home(tmp_path_factory.mktemp("lineage") / "home")
    home.init()
    home.config.write_text(CONFIG)
    home.preamble.write_text("Be exact.\n")
    home.add_agent("researcher", "You look things up.\n")
    helper(
        home, "critic", "description: Finds faults.\ntools: [read_file, write_file]\nmax_steps: 3", "You find faults."
    )
    helper(home, "scholar", "agent: researcher", "Look well.")
    return AgentFiles(home, load_config(home.path, {}), ManualClock(), {}.get)


def helper(home: Home, name: str, head: str, body: str) -> Path:
    path = home.agents / "operant" / "helpers" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\n{head}\n---\n{body}\n")
    return path


def may(files: AgentFiles, name: str) -> set[str]:
    agent = files.get(name)
    return {tool for tool in TOOLS if permitted(agent, tool)}


def test_a_worker_is_its_agent_under_another_name(files: AgentFiles) -> None:
    root, worker = files.get("operant"), files.get("operant/worker")
    assert (worker.prompt, worker.models, worker.limits) == (root.prompt, root.models, root.limits)
    assert may(files, "operant/worker") == may(files, "operant") == {"read_file", "read_mail", "shell", "spawn_agent"}


def test_a_helper_has_its_own_prompt_and_less_to_work_with(files: AgentFiles) -> None:
    critic = files.get("operant/critic")
    assert critic.prompt == "Be exact.\n\nYou find faults."
    assert may(files, "operant/critic") == {"read_file"}
    assert (critic.limits.max_steps, critic.limits.turn_tokens) == (3, 5000)
    assert files.get("operant").helpers == {"critic": "Finds faults.", "scholar": ""}


def test_another_agent_lends_its_prompt_and_its_models_and_no_right(files: AgentFiles) -> None:
    root, scholar = files.get("operant"), files.get("operant/scholar")
    assert "You look things up." in scholar.prompt
    assert scholar.models == ("b/two",)
    assert may(files, "operant/scholar") == {"read_file", "shell", "spawn_agent"}
    assert (scholar.approval, scholar.sandbox, scholar.network) == (root.approval, True, ("example.org",))
    assert scholar.workspace == root.workspace
    assert scholar.permissions.skills == ("sum*",)


@given(steps=STEPS)
def test_no_generation_may_do_more_than_the_one_before(files: AgentFiles, steps: list[str]) -> None:
    before = may(files, "operant")
    for depth in range(1, len(steps) + 1):
        now = may(files, "/".join(["operant", *steps[:depth]]))
        assert now <= before
        before = now


@pytest.mark.parametrize(
    "name",
    ["operant/nobody", "nobody/worker", "operant/", "operant/../x", "operant/worker(", "operant/worker(a/b)",
     "operant/Critic", "/".join(["operant", *["worker"] * (DEEPEST + 1)])],
)  # fmt: skip
def test_what_is_no_descendant_is_not_found(files: AgentFiles, name: str) -> None:
    with pytest.raises(NotFound):
        files.get(name)


def test_one_that_was_never_valid_is_nobody_and_cannot_be_its_own_ancestor(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.init()
    home.add_agent("operant")
    helper(home, "loop", "agent: operant/loop", "")
    helper(home, "worker", "tools: 7", "")
    files = AgentFiles(home, load_config(home.path, {}), ManualClock(), {}.get)
    for name in ("loop", "worker"):
        with pytest.raises(NotFound, match="never valid"):
            files.get(f"operant/{name}")
    assert {one.where for one in files.problems()} == {"agents/operant/helpers"}
