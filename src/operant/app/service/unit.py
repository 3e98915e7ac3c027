"""What is written for a service: the unit of systemd, the property list of launchd. Nothing here touches the disk."""

from __future__ import annotations

import hashlib
import plistlib
from pathlib import Path
from typing import NamedTuple

from operant.app.supervise import REFUSED, RESTART, WRONG, command_line
from operant.kernel.errors import Invalid

STEPS_SINCE = 254
"""The first systemd that lets the pause before a restart grow."""
_PATIENCE_S = 30
_UNFIT = frozenset("\"'\\\x7f")  # what systemd takes in no name of an executable, however it is written

_SYSTEMD = """\
# Written by `operant service install`, which writes it anew: put changes into `systemctl --user edit {name}`.
[Unit]
Description={description}
StartLimitIntervalSec=0

[Service]
Type=notify
# The colon: a $ in a path is a $.
ExecStart=:{command}
Restart=always
RestartForceExitStatus={again}
SuccessExitStatus={again}
RestartPreventExitStatus={wrong} {refused}
{pause}
KillMode=mixed
TimeoutStopSec={patience}
LimitCORE=0
# A command that takes all memory does not take the daemon with it.
OOMPolicy=continue
# No NoNewPrivileges=, RestrictNamespaces=, or what implies them in a user unit (system call filters, ProtectSystem=,
# PrivateTmp=, and so on): the daemon puts each command into a sandbox of its own, and they would forbid that.

[Install]
WantedBy=default.target
"""
_GROWING = "RestartSec=500ms\nRestartSteps=6\nRestartMaxDelaySec=30"
_FIXED = "RestartSec=2"


class Daemon(NamedTuple):
    """What a service runs: the daemon of one home. `name` tells it from those of other homes."""

    home: Path
    name: str
    command: tuple[str, ...]

    @staticmethod
    def of(home: Path, default: Path) -> Daemon:
        """Describe the daemon of a home, run by the Python that runs us; the default home has the plain name."""
        suffix = "" if home == default else f"-{hashlib.sha256(bytes(home)).hexdigest()[:8]}"
        return Daemon(home, f"operant{suffix}", tuple(command_line(str(home))))


def systemd_unit(daemon: Daemon, version: int) -> str:
    """Return the text of a user unit for a systemd of this version; 0 when that is not known.

    Raises `Invalid` for a path that no unit can hold.
    """
    executable = daemon.command[0]
    if any(letter < " " or letter in _UNFIT for letter in executable):
        raise Invalid(
            f"systemd starts no program with a quote, backslash or control character in its path: {executable!r}.",
            "Install Operant into another directory.",
        )
    return _SYSTEMD.format(
        name=daemon.name,
        description=escaped(f"Operant ({daemon.home})"),
        command=" ".join(quoted(word) for word in daemon.command),
        again=RESTART,
        wrong=WRONG,
        refused=REFUSED,
        pause=_GROWING if version >= STEPS_SINCE else _FIXED,
        patience=_PATIENCE_S,
    )


def quoted(word: str) -> str:
    """Write a word of a command for a unit, so that systemd reads it as it is. Raises `Invalid`."""
    return f'"{escaped(word, also=_QUOTED)}"'


def escaped(text: str, also: dict[int, str] | None = None) -> str:
    """Write text for a unit: specifiers are none, and it stays on its line. Raises `Invalid` when it is no text."""
    if not text.isprintable() and any(0xD800 <= ord(letter) <= 0xDFFF for letter in text):
        raise Invalid(
            f"A service needs paths in UTF-8, and this one is not: {text!r}.", "Choose another home (OPERANT_HOME)."
        )
    return text.translate({**_CONTROL, ord("%"): "%%", **(also or {})})


_CONTROL = {code: f"\\x{code:02x}" for code in (*range(1, 32), 127)}
_QUOTED = {ord('"'): '\\"', ord("\\"): "\\\\"}


def launchd_plist(daemon: Daemon) -> str:
    """Return the property list of a launch agent. Raises `Invalid` for a path that it cannot hold."""
    said = str(daemon.home / "logs" / "service.log")
    agent: dict[str, object] = {
        "Label": daemon.name,
        "ProgramArguments": list(daemon.command),
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": 2,
        "ExitTimeOut": _PATIENCE_S,
        "HardResourceLimits": {"Core": 0},
        "StandardOutPath": said,
        "StandardErrorPath": said,
    }
    try:
        return plistlib.dumps(agent, sort_keys=False).decode()
    except (UnicodeEncodeError, ValueError) as error:
        raise Invalid(
            f"A property list cannot hold this path: {str(daemon.home)!r}.", "Choose another home (OPERANT_HOME)."
        ) from error
