"""The service from outside, with a systemctl that writes down what it is asked, and without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import Operant, Ran

SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$0.calls"
case "$*" in
  "--version") echo "systemd 256 (256.1-1)";;
  "--user show --property=Version") cat "$0.bus";;
  *--property=ActiveState*) cat "$0.state";;
esac
case "$*" in
  *" $(cat "$0.fails") "*) echo "Job for operant.service failed." >&2; exit 1;;
esac
"""
STOPPED = "ActiveState=inactive\nSubState=dead\nUnitFileState=enabled\nMainPID=0\nNRestarts=0\n"
RUNNING = "ActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=4711\nNRestarts=2\n"


class Machine:
    """A person's account with systemd."""

    def __init__(self, root: Path) -> None:
        self.operant = Operant(root / ".operant")
        self.systemctl = root / "bin" / "systemctl"
        self.systemctl.parent.mkdir()
        self.systemctl.write_text(SYSTEMCTL)
        self.systemctl.chmod(0o755)
        self.units = root / ".config" / "systemd" / "user"
        self.path = f"{self.systemctl.parent}:/usr/bin:/bin"
        self.set(bus="Version=256.1\n", state=STOPPED, fails="-")

    def set(self, **words: str) -> None:
        """Say what systemctl answers."""
        for name, text in words.items():
            self.systemctl.with_name(f"systemctl.{name}").write_text(text)

    def __call__(self, *words: str, **env: str) -> Ran:
        """Run a command about the service."""
        return self.operant("service", *words, PATH=self.path, **env)

    def calls(self) -> list[str]:
        """Return what systemctl was told since the last look, without the questions."""
        book = self.systemctl.with_name("systemctl.calls")
        lines = book.read_text().splitlines() if book.exists() else []
        book.write_text("")
        return [line for line in lines if " show " not in line and line != "--version"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_is_installed_once(machine: Machine) -> None:
    unit = machine.units / "operant.service"
    first = machine("install")
    assert first.code == 0, first.err
    assert f"Wrote {unit}." in first.out
    assert "operant service start" in first.out
    assert machine.calls() == ["--user daemon-reload", "--user enable operant.service"]
    text = unit.read_text()
    assert f'"--home" "{machine.operant.home}" "serve"' in text
    assert "RestartSteps=6" in text
    second = machine("install")
    assert (second.code, unit.read_text()) == (0, text)
    assert "was there already" in second.out


def test_an_old_unit_is_renewed(machine: Machine) -> None:
    machine("install")
    unit = machine.units / "operant.service"
    unit.write_text(f"{unit.read_text()}# mine\n")
    assert f"Wrote {unit}." in machine("install").out
    assert "# mine" not in unit.read_text()
    assert [file.name for file in machine.units.iterdir()] == ["operant.service"]


def test_it_lies_where_the_settings_of_programs_lie(machine: Machine, tmp_path: Path) -> None:
    assert machine("install", XDG_CONFIG_HOME=str(tmp_path / "elsewhere")).code == 0
    assert (tmp_path / "elsewhere" / "systemd" / "user" / "operant.service").exists()


def test_two_homes_have_two_services(machine: Machine, tmp_path: Path) -> None:
    other = tmp_path / "a second 100% home"
    assert machine("install").code == machine("install", OPERANT_HOME=str(other)).code == 0
    names = sorted(file.name for file in machine.units.iterdir())
    assert len(names) == 2
    assert names[1] == "operant.service"
    assert f'"--home" "{tmp_path}/a second 100%% home" "serve"' in (machine.units / names[0]).read_text()
    assert machine("uninstall").code == 0
    assert [file.name for file in machine.units.iterdir()] == names[:1]


def test_print_shows_the_unit_and_does_nothing(machine: Machine) -> None:
    shown = machine("install", "--print")
    assert shown.out.splitlines().count("Type=notify") == 1
    assert machine.calls() == []
    assert not machine.units.exists()
    machine("install")
    assert (machine.units / "operant.service").read_text() == shown.out


def test_it_is_started_stopped_and_restarted(machine: Machine) -> None:
    machine("install")
    machine.calls()
    said = [machine(verb) for verb in ("start", "restart", "stop")]
    assert [ran.code for ran in said] == [0, 0, 0]
    assert machine.calls() == [f"--user {verb} operant.service" for verb in ("start", "restart", "stop")]


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_what_is_not_installed_cannot_be_moved(machine: Machine, verb: str) -> None:
    ran = machine(verb)
    assert (ran.code, machine.calls()) == (4, [])
    assert ran.err == "operant: Operant is not installed as a service. First: operant service install.\n"


def test_a_start_that_fails_says_where_to_look(machine: Machine) -> None:
    machine("install")
    machine.set(fails="start")
    ran = machine("start")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "Job for operant.service failed." in ran.err
    assert "journalctl --user -u operant.service" in ran.err


def test_it_is_uninstalled_and_the_home_stays(machine: Machine) -> None:
    machine.operant("init")
    machine("install")
    machine.calls()
    assert "Removed" in machine("uninstall").out
    orders = ["--user disable --now operant.service", "--user daemon-reload", "--user reset-failed operant.service"]
    assert machine.calls() == orders
    assert not (machine.units / "operant.service").exists()
    assert machine.operant.home.is_dir()
    again = machine("uninstall")
    assert (again.code, machine.calls()) == (0, [])
    assert "was not installed" in again.out


def test_status_says_how_it_stands(machine: Machine) -> None:
    assert "not installed" in machine("status").out
    machine("install")
    stopped = machine("status")
    assert stopped.code == 1
    assert "operant.service is inactive (dead)." in stopped.out
    machine.set(state=RUNNING)
    running = machine("status")
    assert running.code == 0
    assert "operant.service is active (running), process 4711, started again 2 times." in running.out
    assert "Starts at login" in running.out


def test_status_as_data_has_every_field(machine: Machine) -> None:
    absent = machine("status", "--json")
    machine("install")
    machine.set(state=RUNNING)
    running = machine("status", "--json")
    assert (absent.code, running.code) == (1, 0)
    assert absent.json().keys() == running.json().keys()
    assert not absent.json()["installed"]
    assert running.json() == {
        "name": "operant.service",
        "path": str(machine.units / "operant.service"),
        "installed": True,
        "enabled": True,
        "running": True,
        "state": "active (running)",
        "pid": 4711,
        "restarts": 2,
    }


@pytest.mark.parametrize("verb", ["install", "uninstall", "start", "stop", "restart", "status"])
def test_without_a_user_manager_it_says_what_to_run_instead(machine: Machine, verb: str) -> None:
    machine.systemctl.write_text("#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n")
    ran = machine(verb)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "operant: There is no systemd for your user here (Failed to connect to bus: No medium found). "
        "Run `operant serve --supervised` instead: it keeps itself running.\n"
    )
    assert not machine.units.exists()


@pytest.mark.parametrize("verb", ["install", "status"])
def test_without_systemd_it_says_what_to_run_instead(machine: Machine, tmp_path: Path, verb: str) -> None:
    ran = machine.operant("service", verb, PATH=str(tmp_path / "empty"))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "operant: There is no systemctl here. Run `operant serve --supervised` instead: it keeps itself running.\n"
    )


def test_without_systemd_the_unit_can_still_be_seen(machine: Machine, tmp_path: Path) -> None:
    shown = machine.operant("service", "install", "--print", PATH=str(tmp_path / "empty"))
    assert shown.code == 0
    assert "RestartSec=2\n" in shown.out


def test_a_directory_that_cannot_be_made_is_named(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("a file")
    ran = machine("install")
    assert ran.code == 1
    assert f"The directory {machine.units} cannot be made" in ran.err
