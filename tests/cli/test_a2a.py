"""`operant a2a`: with a daemon, whose offline model says what it was told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import Operant


def test_a_message_is_sent_answered_and_listed(served: Operant) -> None:
    served("agent", "add", "coder")
    asked = served("a2a", "send", "--to", "coder", "hello")
    assert asked.code == 0, asked.err
    assert asked.out.strip()
    quiet = served("a2a", "send", "--silent", "--to", "coder", "--json", "for the record").json()
    told = served("a2a", "send", "--notify", "--to", "coder", "look")
    assert (quiet["kind"], quiet["sender"], quiet["to"]) == ("silent", "owner", "coder")
    assert "handed over" in told.out
    kinds = [one["kind"] for one in served("a2a", "list", "--json").json()]
    assert kinds == ["notify", "silent", "wake"]
    assert "for the record" in served("a2a", "list").out
    shown = served("a2a", "show", quiet["id"])
    assert "owner to coder, silent: for the record" in shown.out


def test_what_is_wrong_is_one_line(served: Operant) -> None:
    for words, code in (
        (("send", "--to", "nobody", "x"), 4),
        (("send", "--to", "coder@nowhere", "x"), 4),
        (("show", "none"), 4),
        (("send", "--from", "no-such-session", "--notify", "x"), 4),
        (("send",), 2),
    ):
        ran = served("a2a", *words)
        assert (ran.code, len(ran.err.strip().splitlines())) == (code, 1), ran.err


def test_without_a_daemon_an_answer_is_waited_for_all_the_same(operant: Operant) -> None:
    ran = operant("a2a", "send", "hello")
    assert ran.code == 0, ran.err
    assert ran.out.strip()
    assert [one["state"] for one in operant("a2a", "list", "--json").json()] == ["answered"]
    assert operant("a2a", "list", "--open", "--json").json() == []


def test_what_rests_without_a_daemon_says_so(operant: Operant) -> None:
    told = operant("a2a", "send", "--notify", "write x.md: hi")
    assert "handed over" in told.out and "Operant does not run" in told.out
    assert "does not run" not in operant("a2a", "send", "--silent", "for the record").out
    operant("run", 'run "echo hi"')
    assert "Operant does not run" in operant("approval", "deny", "last").out


def test_an_answer_of_another_home_is_printed_when_it_is_there(tmp_path: Path) -> None:
    pytest.importorskip("a2a", reason="the extra a2a is not installed")
    here, there = Operant(tmp_path / "here"), Operant(tmp_path / "there")
    there("init")
    (there.home / "operant.yaml").write_text("gateway: {port: 0}\na2a: {serve: [operant]}\n")
    token = there("token", "add", "here", "--scope", "a2a:operant", "--json").json()["token"]
    with there.serving() as daemon:
        assert daemon.stdout is not None
        url = daemon.stdout.readline().split()[2]
        here("init")
        (here.home / "operant.yaml").write_text(
            "gateway: {port: 0}\negress: {private: [127.0.0.1]}\n"
            f"a2a: {{peers: {{work: {{url: '{url}', token: {token}}}}}}}\n"
        )
        alone = here("a2a", "send", "--to", "@work", "hello")
        with here.serving():
            asked = here("a2a", "send", "--to", "@work", "hello again")
            told = here("a2a", "send", "--notify", "--to", "@work", "look")
    for ran in (alone, asked):
        assert (ran.code, ran.err) == (0, ""), ran.out
        assert ran.out.strip()
    assert told.out.strip() == "It was handed over. @work."
