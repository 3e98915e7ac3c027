"""Keep the daemon running: a light parent that starts it again when it ends, and ends when it is told to.

It lives as long as the daemon and must not break, so it has no threads, no event loop and no package outside the
standard library. It starts the same program with its own environment, which no daemon can change, and not when the
package was changed meanwhile by anything but an installer. The daemon is in a session of its own: Ctrl-C reaches it
once, through us. Windows: written for it and not tried; there the console hands Ctrl-C to both.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from operant.app.intact import objection, sums_of

DONE, FAILED, WRONG, REFUSED, NOT_STARTED = 0, 1, 2, 3, 127
RESTART = 75
"""The same number as `operant.app.serve.RESTART`, which would bring the whole system into this process."""


SUPERVISED = "OPERANT_SUPERVISED"
"""The same name as `operant.app.renewal.SUPERVISED`, for the same reason."""


class Rules(NamedTuple):
    """When a program is started again; all times in seconds."""

    first_s: float = 0.5
    most_s: float = 30.0
    steady_s: float = 60.0
    short_s: float = 2.0
    failures: int = 5
    window_s: float = 60.0
    installing_s: float = 20.0


class Course:
    """What became of the program so far, and what follows from it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._crashes = 0
        self._failures: list[float] = []

    def after(self, code: int, lived_s: float, now: float) -> float | None:
        """Return how long to wait before the next start, or None when there is to be none.

        `code` is negative for a signal, `now` is any clock in seconds that does not go back.
        """
        if code == RESTART:
            self._crashes = 0
            return 0.0
        if code in (DONE, WRONG, REFUSED) or self._hopeless(code, lived_s, now):
            return None
        if lived_s >= self._rules.steady_s:
            self._crashes = 0
        delay = min(self._rules.first_s * 2**self._crashes, self._rules.most_s)
        self._crashes = min(self._crashes + 1, 30)
        return delay

    def _hopeless(self, code: int, lived_s: float, now: float) -> bool:
        """Tell whether it fails at once again and again: a cause that a further start does not take away."""
        if code != FAILED or lived_s >= self._rules.short_s:
            return False
        self._failures = [*(at for at in self._failures if now - at < self._rules.window_s), now]
        return len(self._failures) >= self._rules.failures


def command_line(home: str = "") -> list[str]:
    """Return what starts the daemon; without a home the environment says which.

    With `-P` a file beside us, say `~/select.py`, is not taken for a module.
    """
    return [sys.executable, "-P", "-m", "operant", *(["--home", home] if home else []), "serve"]


def supervise(argv: Sequence[str], rules: Rules | None = None) -> int:
    """Keep a program running until it or somebody ends it, and return the exit code.

    Call it once, in the main thread of a process that has no other children: it also buries orphans.
    """
    with _Signals() as signals:
        return _Supervisor(argv, rules or Rules(), signals).run()


class _Supervisor:
    def __init__(self, argv: Sequence[str], rules: Rules, signals: _Signals) -> None:
        self._argv = argv
        self._rules = rules
        self._course = Course(rules)
        self._sums = sums_of()
        self._signals = signals

    def run(self) -> int:
        while True:
            begun = time.monotonic()
            code = self._live()
            now = time.monotonic()
            if self._signals.ending:
                return _code_at_end(code, self._signals.ending)
            delay = self._course.after(code, now - begun, now)
            if delay is None:
                return self._last(code)
            foreign = self._foreign()
            if foreign:
                _say(f"{foreign} is not what was installed. The daemon is not started again; install Operant anew.")
                return REFUSED
            if self._signals.again:  # a person waits
                delay = 0.0
            when = f"in {delay:g} s" if delay else "at once"
            _say(f"the daemon {_words(code)} after {now - begun:.1f} s; it is started again {when}.")
            self._signals.wait(delay)
            if self._signals.ending:
                return DONE

    def _live(self) -> int:
        """Start the program and return how it ended."""
        with _held(self._signals.numbers):  # none is taken before it is known whom to pass it on to
            if self._signals.ending:
                return DONE
            self._signals.again = False
            child = self._signals.child = _start(self._argv, self._signals.numbers)
        code = _wait(child)
        self._signals.child = 0
        return code

    def _foreign(self) -> str:
        """Return a file of the package that no installer wrote; one that is at work is given the time to end."""
        until = time.monotonic() + self._rules.installing_s
        while (found := objection(self._sums)) and time.monotonic() < until and not self._signals.ending:
            self._signals.wait(1.0)
            self._signals.again = False
        return found

    def _last(self, code: int) -> int:
        if code == FAILED:
            _say(f"the daemon failed {self._rules.failures} times at its start; see what it said. Given up.")
        return code


class _Signals:
    """The signals that we take: each is passed on to the program, and remembered."""

    def __init__(self) -> None:
        self.numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
        self.child = 0
        self.ending = 0
        self.again = False
        self._ours, self._woken = socket.socketpair()  # Windows waits for nothing else
        self._before: list[object] = []
        self._wakeup = -1

    def __enter__(self) -> _Signals:
        self._ours.setblocking(False)
        self._woken.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._ours.fileno(), warn_on_full_buffer=False)
        self._before = [signal.signal(number, self._take) for number in self.numbers]
        return self

    def __exit__(self, *reason: object) -> None:
        for number, handler in zip(self.numbers, self._before, strict=True):
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType] - what signal() itself returned
        signal.set_wakeup_fd(self._wakeup)
        self._ours.close()
        self._woken.close()

    def wait(self, seconds: float) -> None:
        """Wait for a while, or until we are told to end or to go on."""
        until = time.monotonic() + seconds
        while not self.ending and not self.again and (left := until - time.monotonic()) > 0:
            if select.select([self._woken], [], [], left)[0]:
                self._woken.recv(512)

    def _take(self, number: int, frame: object) -> None:
        if number == getattr(signal, "SIGHUP", 0):
            self.again = True
        else:
            self.ending = number
        if self.child and sys.platform != "win32":
            with suppress(ProcessLookupError):
                os.kill(self.child, number)


@contextmanager
def _held(numbers: list[int]) -> Generator[None]:
    """Let signals wait outside."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(argv: Sequence[str], numbers: list[int]) -> int:
    """Start a program and return its process id. The signals are held."""
    if sys.platform == "win32":
        return os.spawnv(os.P_NOWAIT, argv[0], [f'"{word}"' if " " in word else word for word in argv])
    bind = _binding()
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        bind()
        if os.getppid() == parent:
            for number in numbers:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
            os.execv(argv[0], list(argv))
    except OSError as error:
        _say(f"{argv[0]} cannot be started: {error.strerror}.")
    finally:
        os._exit(NOT_STARTED)


def _binding() -> Callable[[], object]:
    """Return what a child calls so that it ends when we are gone, however we went; it gets the time to tidy up."""
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    set_pdeathsig = 1
    return lambda: prctl(set_pdeathsig, signal.SIGTERM, 0, 0, 0)


def _wait(child: int) -> int:
    """Return how a child ended; others that end meanwhile are buried, as the first process of a container must."""
    whom = child if sys.platform == "win32" else -1
    while True:
        pid, status = os.waitpid(whom, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _code_at_end(code: int, asked: int) -> int:
    """Return our own exit code when somebody ended us; a program that died of that signal did as it was told."""
    if code in (RESTART, -asked):
        return DONE
    return code if code >= 0 else 128 - code


def _words(code: int) -> str:
    if code == RESTART:
        return "asked for another start"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _say(sentence: str) -> None:
    """Write a line on standard error at once; a terminal that has gone does not end us."""
    with suppress(OSError):
        os.write(2, f"operant: {time.strftime('%Y-%m-%dT%H:%M:%S%z')} {sentence}\n".encode())
