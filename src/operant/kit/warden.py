"""Stand between Operant and one program, and see to it that nothing of the program outlives the run.

`proc.py` runs this file as a script, in a Python without `site`: it is the parent of the program and adopts whatever
the program leaves behind (`PR_SET_CHILD_SUBREAPER`), however often that forked or began sessions of its own. Its
standard streams: 0 says when to end (a byte: politely; its end: Operant is gone, at once), 1 takes the report, 2 is
the program's output. Linux only. `signal` and `ctypes` are not imported: each costs 3 ms or more per program.
"""

from __future__ import annotations

import _ctypes
import os
import select
import sys
import time

GRACE_S = 0.3
SIGKILL, SIGPIPE, SIGTERM, SIGXFSZ = 9, 13, 15, 25
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main(rlimits: str, argv: list[str]) -> None:
    """Run `argv`, report how it ended, end all that it left."""
    _libc("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    family = Family(_start(rlimits, argv))
    _report(f"started {family.child}")
    grace_s = _wait_for_end(family.child)
    family.end(grace_s)
    code = os.waitstatus_to_exitcode(family.status)
    _report(f"exit {code}" if code >= 0 else f"signal {-code}")


class Family:
    """The program and everything that came of it."""

    def __init__(self, child: int) -> None:
        self.child = child
        self.status = SIGKILL

    def end(self, grace_s: float) -> None:
        """Return when none is left: SIGTERM, `grace_s` for those that tidy up, then SIGKILL until all are gone."""
        if self._reaped():
            return
        if grace_s:
            self._signal(SIGTERM)
            deadline = time.monotonic() + grace_s
            while time.monotonic() < deadline:
                if self._reaped():
                    return
                _pause(5)
        while not self._reaped():
            self._signal(SIGKILL)
            _pause(2)

    def _reaped(self) -> bool:
        """Collect the dead; true when nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.child:
                self.status = status

    def _signal(self, number: int) -> None:
        """Signal whole groups at once, so that what forks faster than we look dies with the rest.

        A group with one of ours in it has only ours: nobody joins a group of a session that is not their own.
        """
        own = os.getpgid(0)
        groups: set[int] = set()
        for pid in _descendants(os.getpid()):
            try:
                group = os.getpgid(pid)
                if group == own:  # the program itself, before it has a session
                    os.kill(pid, number)
                else:
                    groups.add(group)
            except ProcessLookupError:
                continue
        for group in groups:
            try:
                os.killpg(group, number)
            except (ProcessLookupError, PermissionError):
                continue


def _start(rlimits: str, argv: list[str]) -> int:
    warden = os.getpid()
    child = os.fork()
    if child:
        return child
    os.setsid()
    _libc("prctl", PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() != warden:
        os._exit(127)
    report = os.dup(1)  # closed by the exec
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for ignored in (SIGPIPE, SIGXFSZ):  # Python ignores them, and that would be inherited
        _libc("signal", ignored, 0)
    _set_limits(rlimits)
    try:
        os.execvpe(argv[0], argv, _environment())
    except OSError as error:
        os.write(report, f"failed {error.errno}\n".encode())
        os._exit(127)


def _environment() -> dict[bytes, bytes]:
    """Return the environment as it was handed to us; Python may have added LC_CTYPE to it."""
    with open("/proc/self/environ", "rb") as block:  # noqa: PTH123 - pathlib would double the start
        entries = [entry.partition(b"=") for entry in block.read().split(b"\0") if entry]
    return {name: value for name, _, value in entries}


def _set_limits(rlimits: str) -> None:
    if not rlimits:
        return
    import resource

    for pair in rlimits.split(","):
        which, value = (int(number) for number in pair.split(":"))
        hard = resource.getrlimit(which)[1]
        ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (ceiling, ceiling))


def _wait_for_end(child: int) -> float:
    """Wait until the program ended or we are told to end it; return how long the others may take."""
    handle = os.pidfd_open(child)
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    poller.register(0, select.POLLIN)
    ready = {fd for fd, _ in poller.poll()}
    if handle in ready:
        return GRACE_S
    return GRACE_S if os.read(0, 1) else 0.0


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    pending = [pid]
    while pending:
        children = _children(pending.pop())
        found += children
        pending += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib would double the start
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as lines:  # noqa: PTH123
                found += [int(word) for word in lines.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return found
    return found


def _report(line: str) -> None:
    try:
        os.write(1, f"{line}\n".encode())
    except BrokenPipeError:
        return  # Operant is gone; the work here is still to be done


def _pause(milliseconds: int) -> None:
    select.poll().poll(milliseconds)


def _libc(function: str, *arguments: int) -> int:
    program = _ctypes.dlopen(None, 0)  # pyright: ignore[reportArgumentType] - typeshed does not know of None
    return _ctypes.call_function(_ctypes.dlsym(program, function), arguments)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
    os._exit(0)  # nothing to tidy up, and 2 ms sooner
