"""`operant mcp …` as programs and people use it."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli.process import Operant
from tests.ext.mcp.house import ROOT


@pytest.fixture
def peer(operant: Operant) -> list[str]:
    """Return the words that add a server, and write down what it has."""
    operant("init")
    plan(operant, echo="Say it again.")
    env = ["--env", f"PEER={operant.home.parent / 'peer.json'}", "--env", f"PYTHONPATH={ROOT}"]
    return ["mcp", "add", "peer", *env, "--", sys.executable, "-m", "tests.ext.mcp.peer"]


def plan(operant: Operant, **tools: str) -> None:
    (operant.home.parent / "peer.json").write_text(json.dumps({"tools": tools}))


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_server_from_adding_to_removing(operant: Operant, peer: list[str]) -> None:
    with operant.serving():  # so that the SDK is imported once
        assert "There are no servers" in operant("mcp", "list").out
        assert "operant mcp test peer" in operant(*peer).out
        assert operant("mcp", "list", "--json").json()[0]["source"] == "mcp.json"
        shown = operant("mcp", "test", "peer")
        assert shown.code == 0 and "mcp__peer__echo" in shown.out and "Say it again." in shown.out
        plan(operant, echo="Say it to me.")
        assert "operant mcp approve peer" in operant("mcp", "test", "peer").out
        assert operant("mcp", "approve", "peer", "--json").json() == {"name": "peer", "approved": ["echo"]}
        assert operant("mcp", "approve", "peer").out == "Nothing had changed.\n"
        assert operant("mcp", "remove", "peer").code == 0
        assert operant("mcp", "test", "peer").code == 4


def test_what_cannot_be_is_one_line(operant: Operant) -> None:
    operant("init")
    assert operant("mcp", "add", "x").code == 2
    assert operant("mcp", "add", "x", "--url", "http://a", "--", "program").code == 2
    assert operant("mcp", "add", "a b", "--url", "http://127.0.0.1:1/").code == 2
    assert operant("mcp", "add", "x", "--env", "NAME", "--", "program").code == 2
    assert operant("mcp", "add", "gone", "--", "/no/such/program").code == 0
    failed = operant("mcp", "test", "gone")
    assert failed.code == 1 and failed.err.count("\n") == 1 and "/no/such/program" in failed.err
