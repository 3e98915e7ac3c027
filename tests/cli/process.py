"""The command as a program: in a home of its own, with the offline model, read through pipes or a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyte

PATIENCE_S = 20.0


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Read what it printed as JSON."""
        return json.loads(self.out)


class Operant:
    """Run commands against one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        self.env = {**kept, "OPERANT_HOME": str(home), "HOME": str(home.parent), "TZ": "UTC", "NO_COLOR": "1"}

    def __call__(self, *words: str, stdin: str = "", **env: str) -> Ran:
        """Run a command to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "operant", *words],
            input=stdin,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def serving(self) -> Iterator[subprocess.Popen[str]]:
        """Keep a daemon running."""
        daemon = subprocess.Popen(
            [sys.executable, "-m", "operant", "serve"], env=self.env, stdout=subprocess.PIPE, text=True
        )
        try:
            assert daemon.stdout is not None
            assert "ready" in daemon.stdout.readline()
            yield daemon
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(PATIENCE_S)
            if daemon.stdout:
                daemon.stdout.close()

    def allow(self, **rules: str) -> None:
        """Say in the settings what needs no question."""
        words = ", ".join(f"{tool}: {answer}" for tool, answer in rules.items())
        self("init")
        (self.home / "operant.yaml").write_text(f"defaults:\n  approval: {{{words}}}\n")

    @contextmanager
    def terminal(self, *words: str, columns: int = 100, lines: int = 40) -> Iterator[Terminal]:
        """Run a command in a terminal of its own."""
        master, slave = pty.openpty()
        subprocess.run(["stty", "rows", str(lines), "cols", str(columns)], stdin=slave, check=True)
        env = {**self.env, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
        program = subprocess.Popen(
            [sys.executable, "-m", "operant", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
        )
        os.close(slave)
        try:
            yield Terminal(master, program, columns, lines)
        finally:
            if program.poll() is None:
                program.kill()
            program.wait(PATIENCE_S)
            os.close(master)


class Terminal:
    """A screen and a keyboard."""

    def __init__(self, master: int, program: subprocess.Popen[bytes], columns: int, lines: int) -> None:
        self.program = program
        self.raw = b""
        self._master = master
        self._screen = pyte.HistoryScreen(columns, lines, history=2000)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def text(self) -> str:
        """Return everything that was and is on the screen."""
        above = [
            "".join(line[column].data for column in range(self._screen.columns)).rstrip()
            for line in self._screen.history.top
        ]
        return "\n".join([*above, *(line.rstrip() for line in self._screen.display)])

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def wait(self, wanted: str | Callable[[str], bool]) -> str:
        """Read until something is on the screen."""
        until = time.monotonic() + PATIENCE_S
        while not (wanted in self.text if isinstance(wanted, str) else wanted(self.text)):
            assert self._read(until), f"waited for {wanted!r} in:\n{self.text}"
        return self.text

    def end(self) -> int:
        """Read until the program has ended, and return its exit code."""
        until = time.monotonic() + PATIENCE_S
        while self._read(until):
            pass
        return self.program.wait(PATIENCE_S)

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(until - time.monotonic(), 0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # the other end is closed
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)
