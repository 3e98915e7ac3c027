"""systemd and launchd as their manuals have them, played by scripts; and the systems that have nothing of the kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.app.service.manager import Launchd, Systemd, manager_of
from operant.app.service.unit import Daemon
from operant.kernel.errors import NotFound, Unavailable

LAUNCHCTL = """#!/bin/sh
echo "$*" >> "$0.calls"
case "$1" in
  bootstrap) touch "$0.loaded";;
  bootout) rm "$0.loaded";;
  print)
    test -e "$0.loaded" || { echo "Could not find service" >&2; exit 113; }
    printf '%s = {\\n\\tstate = running\\n\\truns = 3\\n\\tpid = 4711\\n' "$2"
    printf '\\tendpoints = {\\n\\t\\tpid = 1\\n\\t}\\n}\\n';;
esac
"""

SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$0.calls"
case "$*" in
  --version) echo "systemd 252 (252.1)";;
  *--property=ActiveState*) printf 'ActiveState=active\\nSubState=running\\nUnitFileState=enabled\\nMainPID=7\\n';;
  *" stop "*) exit 5;;
esac
"""


class Mac:
    """A machine with a launchctl that writes down what it is asked."""

    def __init__(self, root: Path) -> None:
        self.program = root / "bin" / "launchctl"
        self.program.parent.mkdir()
        self.program.write_text(LAUNCHCTL)
        self.program.chmod(0o755)
        self.home = root / "home"
        env = {"PATH": f"{self.program.parent}:/usr/bin:/bin", "HOME": str(self.home)}
        self.daemon = Daemon.of(self.home / ".operant", self.home / ".operant")
        self.manager = manager_of(self.daemon, env, "darwin")

    def calls(self) -> list[str]:
        """Return the verbs since the last look, without the questions."""
        book = self.program.with_name("launchctl.calls")
        verbs = [line.split()[0] for line in book.read_text().splitlines()] if book.exists() else []
        book.write_text("")
        return [verb for verb in verbs if verb != "print"]


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


async def test_an_agent_is_installed_started_and_removed(mac: Mac) -> None:
    manager = mac.manager
    assert isinstance(manager, Launchd)
    assert manager.path == mac.home / "Library" / "LaunchAgents" / "operant.plist"
    assert await manager.install()
    assert not await manager.install()
    assert mac.calls() == ["enable", "enable"]
    assert manager.path.read_text() == await manager.text()
    assert (mac.home / ".operant" / "logs").is_dir()
    assert (await manager.condition()).state == "not loaded"
    await manager.start()
    await manager.start()
    assert mac.calls() == ["bootstrap", "kickstart"]
    found = await manager.condition()
    assert (found.running, found.state, found.pid, found.restarts) == (True, "running", 4711, 2)
    await manager.restart()
    assert mac.calls() == ["bootout", "bootstrap"]
    await manager.stop()
    await manager.stop()
    assert mac.calls() == ["bootout"]
    await manager.start()
    assert await manager.uninstall()
    assert not await manager.uninstall()
    assert mac.calls() == ["bootstrap", "bootout"]
    assert not manager.path.exists()


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
async def test_an_agent_that_is_not_there_cannot_be_moved(mac: Mac, verb: str) -> None:
    with pytest.raises(NotFound, match="not installed"):
        await getattr(mac.manager, verb)()


def test_windows_is_told_what_to_do_instead(mac: Mac) -> None:
    with pytest.raises(Unavailable) as refused:
        manager_of(mac.daemon, {}, "win32")
    assert "Task Scheduler" in refused.value.hint
    assert "operant serve --supervised" in refused.value.hint


def test_other_systems_are_told_what_to_do_instead(mac: Mac) -> None:
    with pytest.raises(Unavailable) as refused:
        manager_of(mac.daemon, {}, "freebsd14")
    assert "operant serve --supervised" in refused.value.hint


@pytest.mark.parametrize(
    ("env", "where"),
    [
        ({"HOME": "/h"}, "/h/.config"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config"),
    ],
)
def test_the_unit_lies_where_systemd_looks(mac: Mac, env: dict[str, str], where: str) -> None:
    manager = manager_of(mac.daemon, env, "linux")
    assert isinstance(manager, Systemd)
    assert manager.path == Path(where) / "systemd" / "user" / "operant.service"


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    home = tmp_path / "home"
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(home)}
    return Systemd(Daemon.of(home / ".operant", home / ".operant"), env)


async def test_a_unit_is_installed_started_and_removed(systemd: Systemd) -> None:
    with pytest.raises(NotFound, match="not installed"):
        await systemd.start()
    assert await systemd.install()
    assert not await systemd.install()
    assert "RestartSec=2\n" in systemd.path.read_text()
    await systemd.start()
    await systemd.restart()
    found = await systemd.condition()
    assert (found.running, found.enabled, found.state, found.pid) == (True, True, "active (running)", 7)
    with pytest.raises(Unavailable, match=r"stop operant\.service failed: exit code 5") as refused:
        await systemd.stop()
    assert "journalctl" in refused.value.hint
    assert await systemd.uninstall()
    assert not await systemd.uninstall()


async def test_a_file_that_cannot_be_written_or_removed_is_named(systemd: Systemd) -> None:
    systemd.path.mkdir(parents=True)
    with pytest.raises(Unavailable, match=r"operant\.service cannot be written: Is a directory"):
        await systemd.install()
    with pytest.raises(Unavailable, match=r"operant\.service cannot be removed: Is a directory"):
        await systemd.uninstall()


async def test_a_systemctl_that_does_not_start_is_named(systemd: Systemd, tmp_path: Path) -> None:
    (tmp_path / "bin" / "systemctl").write_text("#!/nowhere/sh\n")
    with pytest.raises(Unavailable, match="could not be started") as refused:
        await systemd.condition()
    assert "operant serve --supervised" in refused.value.hint
