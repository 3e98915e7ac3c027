"""Which agent answers where, in a running system whose file is edited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from operant.app.bindings import fits
from operant.app.build import System
from operant.app.config import load_config
from operant.kernel.errors import Invalid
from operant.kernel.records import OWNER, Address, Text
from operant.kernel.syscalls import AgentWhich, SessionDispatch, SessionGet, SessionOpen
from operant.sdk.testing.fakes import MemoryChannel
from operant.sdk.testing.server import ScriptedServer
from tests.cli.process import Operant
from tests.journey.house import ended, system

RULES: list[dict[str, Any]] = [
    {"agent": "researcher", "channel": "memory", "chat": -100123},
    {"agent": "night", "channel": "memory", "user": "owl", "thread": ""},
    {"agent": "researcher", "channel": "slack", "chat": "C01*", "thread": "any"},
]
MORE: dict[str, object] = {"agents": {"researcher": {}, "night": {}}, "bindings": RULES}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer({})
    async with made.serving():
        yield made


@pytest.fixture
async def made(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[System]:
    async with system(tmp_path / "home", server, MORE) as running:
        running.kernel.outbox.register(MemoryChannel())
        yield running


def rebind(made: System, rules: list[dict[str, Any]]) -> None:
    config = yaml.safe_load(made.home.config.read_text())
    made.home.config.write_text(yaml.safe_dump({**config, "bindings": rules}))


async def write(made: System, chat: str, session: str, user: str = "me") -> str:
    """Write as a channel does, and return the session in which it is answered."""
    address = Address(channel="memory", chat=chat)
    call = SessionDispatch(session=session, parts=(Text(text="hello"),), address=address, author=user)
    dispatched = await made.kernel.call(OWNER, call)
    await ended(made, session=dispatched.session)
    return dispatched.session


async def agent_of(made: System, session: str) -> str:
    return (await made.kernel.call(OWNER, SessionGet(session=session))).agent


@pytest.mark.parametrize(
    ("place", "agent"),
    [
        ({"channel": "memory", "chat": "-100123"}, "researcher"),
        ({"channel": "memory", "chat": "-100123", "user": "owl"}, "researcher"),
        ({"channel": "memory", "chat": "5", "user": "owl"}, "night"),
        ({"channel": "memory", "chat": "5", "user": "owl", "thread": "7"}, "operant"),
        ({"channel": "slack", "chat": "C0123", "thread": "7"}, "researcher"),
        ({"channel": "slack", "chat": "D0123"}, "operant"),
        ({}, "operant"),
    ],
)
async def test_the_first_rule_that_fits_names_the_agent(made: System, place: dict[str, str], agent: str) -> None:
    chosen = await made.kernel.call(OWNER, AgentWhich(**place))
    assert chosen.agent == agent
    assert ("binding" in chosen.why) and (chosen.bound == (agent != "operant"))


async def test_messages_are_answered_by_whom_the_rules_name(made: System) -> None:
    assert await write(made, "-100123", "m1") == "m1"
    assert await agent_of(made, "m1") == "researcher"
    await write(made, "5", "m2")
    assert await agent_of(made, "m2") == "operant"


async def test_an_edit_counts_from_the_next_message_on(made: System) -> None:
    assert await write(made, "5", "m2") == "m2"
    rebind(made, [{"agent": "night", "chat": "5"}])
    assert await write(made, "5", "m2") == "m2@night"
    assert await agent_of(made, "m2@night") == "night"
    assert await agent_of(made, "m2") == "operant"
    rebind(made, [])
    assert await write(made, "5", "m2") == "m2"


async def test_an_edit_that_is_not_valid_changes_nothing_and_is_reported(made: System) -> None:
    rebind(made, [{"agent": "nobody", "chat": "5"}])
    assert (await made.kernel.call(OWNER, AgentWhich(channel="memory", chat="-100123"))).agent == "researcher"
    (problem,) = [one for one in made.problems() if one.startswith("settings")]
    assert "there is no agent 'nobody'" in problem


async def test_who_names_an_agent_or_goes_on_with_a_session_of_programs_gets_it(made: System) -> None:
    await made.kernel.call(OWNER, SessionOpen(session="mine", agent="night"))
    rebind(made, [{"agent": "researcher"}])
    await made.kernel.call(OWNER, SessionDispatch(session="mine", parts=(Text(text="hello"),)))
    await ended(made, session="mine")
    assert await agent_of(made, "mine") == "night"
    address = Address(channel="memory", chat="9")
    call = SessionDispatch(session="other", parts=(Text(text="hello"),), address=address, agent="operant")
    assert (await made.kernel.call(OWNER, call)).session == "other"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bindings:\n  - {agent: nobody, chat: x}", "operant.yaml:2: bindings: there is no agent 'nobody'"),
        ("bindings:\n  - {agent: operant, chanel: x}", "operant.yaml:2: bindings.0.chanel: there is no such key"),
        ("bindings:\n  - {chat: x}", "operant.yaml:2: bindings.0: agent is missing"),
        ("bindings: {agent: operant}", "operant.yaml:1: bindings: "),
    ],
)
def test_what_is_wrong_is_one_clear_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "operant.yaml").write_text(text)
    with pytest.raises(Invalid) as caught:
        load_config(tmp_path, {})
    assert caught.value.sentence.startswith(said)
    assert "\n" not in caught.value.sentence


def test_the_command_says_who_and_why(tmp_path: Path) -> None:
    operant = Operant(tmp_path / "home")
    operant("init")
    (operant.home / "operant.yaml").write_text("bindings:\n  - {agent: operant, channel: telegram}\n")
    assert operant("agent", "which", "--channel", "telegram").out == (
        "operant: binding 1 says so (channel: telegram).\n"
    )
    assert operant("agent", "which", "--json").json()["why"] == "no binding fits, so the default agent answers"


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_a_star_stands_for_anything_and_nothing_else_does(rule: str, value: str) -> None:
    import re

    meant = re.fullmatch(".*".join(map(re.escape, rule.split("*"))), value) is not None
    assert fits(rule, value) == meant
