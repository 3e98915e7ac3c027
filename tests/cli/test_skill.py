"""`operant skill …` for somebody who does it for the first time: each answer says what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import Operant

SKILL = "---\nname: {name}\ndescription: A test.\nmetadata:\n  operant.service: {service}\n{more}---\nWords.\n"
GUARD = """\
from operant_sdk import define_service, reject


@define_service
def service():
    def guard(input, output):
        if "rm -rf /" in output["arguments"].get("command", ""):
            return reject("that would delete everything")

    return {"hooks": {"tool.before": guard}}
"""


def put(home: Path, name: str, files: dict[str, str], service: str = "./service.py", more: str = "") -> Path:
    folder = home / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=name, service=service, more=more))
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def test_a_guard_is_written_and_refuses_in_four_commands(served: Operant) -> None:
    put(served.home, "my-guard", {"service.py": GUARD}, more="  operant.hooks: tool.before\n")
    listed = served("skill", "services").out
    assert "ungranted" in listed and "`operant skill grant my-guard`" in listed

    silent = served("skill", "grant", "my-guard")
    assert silent.code != 0 and "Nothing was granted. Without a terminal: --yes." in silent.err
    refused = served("skill", "grant", "my-guard", stdin="n\n")
    assert refused.code == 1 and "Nothing was granted." in refused.err

    granted = served("skill", "grant", "my-guard", stdin="y\n")
    assert granted.code == 0 and "my-guard: running." in granted.out
    again = served("skill", "grant", "my-guard")
    assert again.code == 0 and "runs already" in again.out, "nothing is asked when there is nothing to allow"
    assert "that would delete everything" in served("tool", "run", "shell", '{"command": "echo rm -rf /"}').out
    assert "running" in served("skill", "logs", "my-guard").out

    assert served("skill", "reload", "my-guard").out == "my-guard: running.\n"
    assert "`operant skill start my-guard`" in served("skill", "stop", "my-guard").out
    assert "my-guard: stopped." in served("skill", "reload", "my-guard").out
    assert served("skill", "start", "my-guard").code == 0
    served("skill", "remove", "my-guard")


def test_one_that_fails_says_where_to_look(served: Operant) -> None:
    put(served.home, "ends", {"service.py": "import sys\nprint('no key')\nsys.exit(78)\n"})
    granted = served("skill", "grant", "ends", "--yes")
    assert granted.code == 1
    for answer in (granted.out, served("skill", "services").out, served("skill", "start", "ends").out):
        assert "its configuration is wrong" in answer
        assert "`operant skill logs ends`" in answer and "`operant skill start ends`" in answer
    assert "no key" in served("skill", "logs", "ends").out
    doctor = served("doctor")
    assert "ends" in doctor.out and "operant skill logs ends" in doctor.out
    served("skill", "remove", "ends")
    assert "ends" not in served("doctor").out


def test_what_cannot_run_is_not_asked_about(served: Operant) -> None:
    put(served.home, "lacks", {}, service="./servce.py")
    granted = served("skill", "grant", "lacks", stdin="y\n")
    assert granted.code == 1
    assert "lacks cannot run: operant.service: ./servce.py is no file of the skill" in granted.err
    assert "Let it run" not in granted.err
    unknown = served("skill", "grant", "no-such")
    assert unknown.code == 4 and "`operant skill list`" in unknown.err
    served("skill", "remove", "lacks")


def test_what_a_grant_covers_is_what_the_skill_declares(served: Operant) -> None:
    put(served.home, "wide", {"service.py": GUARD})
    assert "hooks    anywhere that it asks for" in served("skill", "grant", "wide", "--yes").out
    put(served.home, "wide", {"service.py": f"{GUARD}# changed\n"})
    again = served("skill", "grant", "wide", "--yes").out
    assert "hooks    anywhere that it asks for" in again, "not only where the one before it hooked"
    served("skill", "remove", "wide")


def test_one_that_runs_elsewhere_is_told_how_to_connect(served: Operant) -> None:
    put(served.home, "far", {}, service="remote")
    granted = served("skill", "grant", "far", "--yes").out
    assert "far runs elsewhere, and connects." in granted
    assert "`operant token add far --scope service:far`" in granted
    served("skill", "remove", "far")


def test_logs_of_one_that_said_nothing_are_not_just_empty(served: Operant) -> None:
    put(served.home, "quiet", {"service.py": GUARD})
    logs = served("skill", "logs", "quiet")
    assert logs.out == "" and "quiet has written nothing yet" in logs.err
    served("skill", "remove", "quiet")


def test_the_file_of_a_skill_stands_for_its_folder(served: Operant, tmp_path: Path) -> None:
    folder = tmp_path / "tidy"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidy up.\n---\nTidy up.\n")
    assert "tidy is valid" in served("skill", "validate", str(folder / "SKILL.md")).out
    assert "tidy is there" in served("skill", "add", str(folder / "SKILL.md")).out
    other = served("skill", "validate", __file__)
    assert other.code == 2 and "folder of a skill" in other.err
    served("skill", "remove", "tidy")


def test_a_part_of_operant_that_was_removed_comes_back_and_that_is_said(served: Operant) -> None:
    assert "switched off" in served("skill", "remove", "summarize").out
    back = served("skill", "reset", "summarize")
    assert back.out.startswith("summarize is back.")
    put(served.home, "summarize", {"service.py": GUARD})
    assert "skills/.trash" in served("skill", "reset", "summarize").out
    assert served("skill", "reset", "summarize").out == "Nothing was changed.\n"


def test_two_of_one_name_are_told_apart(served: Operant) -> None:
    for folder in ("one", "two"):
        put(served.home, folder, {})
        (served.home / "skills" / folder / "SKILL.md").write_text(
            "---\nname: same\ndescription: A test.\n---\nWords.\n"
        )
    listed = served("skill", "list").out
    assert f"hidden by {served.home}/skills/one" in listed
    assert served("skill", "remove", "same").code == served("skill", "remove", "same").code == 0
    assert served("skill", "remove", "same").code == 4


@pytest.mark.parametrize("words", [b"\xff\xfe", b"\x00---"])
def test_a_file_that_is_no_text_is_called_so(served: Operant, tmp_path: Path, words: bytes) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(words)
    for command in ("validate", "add"):
        ran = served("skill", command, str(folder))
        assert ran.code != 0 and "codec" not in ran.err + ran.out
