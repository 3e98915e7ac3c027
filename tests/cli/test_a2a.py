"""`operant a2a`: with a daemon, whose offline model says what it was told."""

from __future__ import annotations

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
