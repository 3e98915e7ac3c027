"""`operant open` and `operant token`: with a daemon and without."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.cli.process import Operant


@pytest.fixture
def operant(tmp_path: Path) -> Operant:
    made = Operant(tmp_path / "home")
    made.env["OPERANT_GATEWAY__PORT"] = "0"
    return made


def status(address: str, token: str) -> int:
    request = urllib.request.Request(f"{address}/api/status", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def test_init_makes_the_owners_token_for_the_owner_alone(operant: Operant) -> None:
    assert operant("init").code == 0
    token = operant.home / "state" / "token"
    before = token.read_text()
    assert before.startswith("opr_") and token.stat().st_mode & 0o777 == 0o600
    operant("init")
    assert token.read_text() == before


def test_without_a_daemon_there_is_no_page(operant: Operant) -> None:
    said = operant("open")
    assert said.code == 1
    assert "operant serve" in said.err and "Traceback" not in said.err


def test_tokens_are_made_without_a_daemon_and_hold_with_one(operant: Operant) -> None:
    made = operant("token", "add", "phone", "--scope", "read", "--json").json()
    assert operant("token", "add", "phone").code == 1
    assert operant("token", "add", "bad name").code == 2
    assert [one["name"] for one in operant("token", "list", "--json").json()] == ["phone"]
    assert "phone" in operant("token", "list").out
    with operant.serving():
        link = operant("open", "--json").json()["link"]
        address = link.partition("/#")[0]
        assert status(address, made["token"]) == 200
        assert status(address, (operant.home / "state" / "token").read_text().strip()) == 200
        assert operant("token", "revoke", "phone").code == 0
        assert status(address, made["token"]) == 401
        assert operant("token", "revoke", "phone").code == 4
        assert "works once" in operant("open", "--print").out
        for log in (operant.home / "logs").iterdir():
            assert "login=" not in log.read_text()
    assert made["token"] not in json.dumps(operant("token", "list", "--json").json())


def test_a_daemon_without_a_person_prints_no_secret(operant: Operant) -> None:
    with operant.serving() as daemon:
        assert daemon.stdout is not None
        line = daemon.stdout.readline()
    assert "The page: http://127.0.0.1:" in line and "login=" not in line
