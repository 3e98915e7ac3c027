"""What is written for a service says what it should, and systemd and plistlib read it so."""

from __future__ import annotations

import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.app.service.unit import Daemon, launchd_plist, quoted, systemd_unit
from operant.kernel.errors import Invalid

DEFAULT = Path("/home/ada/.operant")
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(not ANALYZE, reason="there is no systemd-analyze here (apt install systemd)")
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
_ESCAPED = re.compile(r'\\(x[0-9a-f]{2}|["\\])|%%')


def daemon(home: Path = DEFAULT, python: str = "") -> Daemon:
    made = Daemon.of(home, DEFAULT)
    return made._replace(command=(python, *made.command[1:])) if python else made


def read(line: str) -> list[str]:
    """Read quoted words as systemd.syntax(7) says; anything that it would take for more than a letter is refused."""
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    assert " ".join(f'"{word}"' for word in words) == line
    for word in words:
        assert not re.search(r"[%\\]", _ESCAPED.sub("", word)), word
        assert not re.search(r"[\x00-\x1f\x7f]", word)
    return [_ESCAPED.sub(_meant, word) for word in words]


def _meant(match: re.Match[str]) -> str:
    if match[0] == "%%":
        return "%"
    return chr(int(match[1][1:], 16)) if match[1].startswith("x") else match[1]


def verify(text: str, tmp_path: Path) -> str:
    """Return what systemd has to say against a unit."""
    assert ANALYZE
    unit = tmp_path / "operant.service"
    unit.write_text(text)
    done = subprocess.run(
        [ANALYZE, "verify", "--user", "--man=no", str(unit)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stderr + done.stdout + (f"exit code {done.returncode}" if done.returncode else "")


def version_here() -> int:
    assert ANALYZE
    said = subprocess.run([ANALYZE, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    found = re.search(r"\d+", said)
    assert found
    return int(found[0])


@given(st.lists(WORDS, min_size=1))
def test_every_word_comes_back_as_it_was(words: list[str]) -> None:
    line = " ".join(quoted(word) for word in words)
    assert len(line.splitlines()) <= 1 or "\n" not in line
    assert read(line) == words


@given(WORDS.map(lambda text: Path("/home") / text.strip("/")))
def test_a_home_of_any_name_is_named_in_one_line(home: Path) -> None:
    text = systemd_unit(daemon(home, "/usr/bin/python3"), 252)
    lines = text.split("\n")
    assert [line.partition("=")[0] for line in lines if "=" in line and not line.startswith("#")] == [
        line.partition("=")[0]
        for line in systemd_unit(daemon(python="/usr/bin/python3"), 252).split("\n")
        if "=" in line and not line.startswith("#")
    ]
    assert not any(line.endswith("\\") for line in lines)
    (command,) = [line.removeprefix("ExecStart=:") for line in lines if line.startswith("ExecStart")]
    assert read(command) == ["/usr/bin/python3", "-P", "-m", "operant", "--home", str(home), "serve"]


@needs_systemd
def test_systemd_has_nothing_against_it(tmp_path: Path) -> None:
    assert verify(systemd_unit(daemon(), version_here()), tmp_path) == ""
    assert verify(systemd_unit(daemon(), 0), tmp_path) == ""


@needs_systemd
def test_systemd_would_say_what_is_wrong(tmp_path: Path) -> None:
    text = systemd_unit(daemon(), 0).replace("KillMode=mixed", "KillMode=sometimes")
    assert "kill mode" in verify(text, tmp_path)


@needs_systemd
@pytest.mark.parametrize(
    "name", ["a b", "50%", "%h", "$HOME", "${HOME}", "a;b", "; ;", "#", "é→", "-", "@x", "a\u2028b"]
)
def test_systemd_finds_the_program_wherever_it_lies(tmp_path: Path, name: str) -> None:
    program = tmp_path / name / "python 3"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    home = tmp_path / name
    assert verify(systemd_unit(daemon(home, str(program)), 0), tmp_path) == ""
    program.unlink()
    assert str(program) in verify(systemd_unit(daemon(home, str(program)), 0), tmp_path)


@pytest.mark.parametrize("python", ['/opt/"x"/python', "/opt/it's/python", "/opt/a\\b/python", "/opt/a\nb/python"])
def test_a_program_that_systemd_would_not_take_is_refused(python: str) -> None:
    with pytest.raises(Invalid, match="systemd starts no program"):
        systemd_unit(daemon(python=python), 0)


def test_a_path_that_is_no_text_is_refused() -> None:
    home = Path("/home/\udcff")
    for write in (lambda: systemd_unit(daemon(home), 0), lambda: launchd_plist(daemon(home))):
        with pytest.raises(Invalid) as refused:
            write()
        assert "OPERANT_HOME" in refused.value.hint


def test_the_pause_grows_only_where_systemd_knows_how() -> None:
    old, new = systemd_unit(daemon(), 253), systemd_unit(daemon(), 254)
    assert "RestartSec=2\n" in old
    assert "RestartSteps" not in old
    assert "RestartSteps=6\nRestartMaxDelaySec=30\n" in new


def test_what_the_daemon_needs_stands_in_the_unit() -> None:
    lines = systemd_unit(daemon(), 252).splitlines()
    for line in (
        "Type=notify",
        "Restart=always",
        "RestartForceExitStatus=75",
        "RestartPreventExitStatus=2 3",
        "KillMode=mixed",
        "TimeoutStopSec=30",
        "WantedBy=default.target",
    ):
        assert line in lines
    settings = [line.partition("=")[0] for line in lines if not line.startswith("#")]
    assert not {"NoNewPrivileges", "RestrictNamespaces", "SystemCallFilter", "ProtectSystem"} & set(settings)


def test_each_home_has_a_name_of_its_own() -> None:
    names = [Daemon.of(Path(home), DEFAULT).name for home in (DEFAULT, "/srv/one", "/srv/two")]
    assert names[0] == "operant"
    assert all(re.fullmatch(r"operant-[0-9a-f]{8}", name) for name in names[1:])
    assert len(set(names)) == 3


def test_the_property_list_keeps_it_alive() -> None:
    home = Path("/Users/a & b/<x>")
    agent = plistlib.loads(launchd_plist(daemon(home)).encode())
    assert agent["KeepAlive"] is True
    assert agent["RunAtLoad"] is True
    assert agent["ExitTimeOut"] == 30
    assert agent["Label"] == daemon(home).name
    assert agent["ProgramArguments"] == [sys.executable, "-P", "-m", "operant", "--home", str(home), "serve"]
    assert agent["StandardErrorPath"] == f"{home}/logs/service.log"


def test_a_property_list_holds_no_control_character() -> None:
    with pytest.raises(Invalid, match="property list"):
        launchd_plist(daemon(Path("/Users/a\x01b")))
