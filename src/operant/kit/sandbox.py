"""What a sandbox is made of, and how bubblewrap is told: a pure function from a frozen policy to a command line.

Inside stand the system's programs (read-only), an `/etc` (see `likeness.py`), a `/proc` and a `/dev` of its own, and
the paths of the policy under their own names; everything else is not there. The network is a namespace with nothing
but a loopback; a proxy's socket may be bound into it. Nothing here decides anything: `app/confine.py` does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HOME = "/home/agent"
UID = 1000
PROXY_SOCKET = "/run/proxy.sock"
LINE = "/run/operant.sock"
COMMANDS = "/run/operant"
_PLACES = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_WALL = 2
"""The kernel stops a sandbox at this many times its processes; before that `oversight.py` ends it."""

_LIMITS = (
    'ulimit -c 0; ulimit -d "$1" 2>/dev/null; '
    '[ "$2" = 0 ] || ulimit -u "$2" 2>/dev/null || ulimit -p "$2" 2>/dev/null; shift 2; exec "$@"'
)


class Kept(NamedTuple):
    """Something in a writable place that stays as it is: an open handle of it, and its path."""

    handle: int
    path: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """What a program may see and use; paths are absolute and the same inside.

    `hidden` is emptied where it lies in something visible, but for what is named below it. `home` and `scratch` are
    the directories that are HOME and /tmp inside; empty ones last as long as the program. `etc` is the directory that
    is /etc inside. `socket` is a proxy's, `line` one of ours and
    `commands` a folder of programs that speak through it; inside they are `LINE` and what is below `COMMANDS`.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    home: str = ""
    scratch: str = ""
    etc: str = ""
    socket: str = ""
    line: str = ""
    commands: tuple[str, ...] = ()
    terminal: bool = False
    memory_bytes: int = 4 * 2**30
    scratch_bytes: int = 2**30
    processes: int = 512


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """An installed bubblewrap: its path, and what it and the kernel can.

    `sizes`: a tmpfs can be given one; `closes`: user namespaces inside can be forbidden; `pins`: open handles can be
    bound; `counts`: a limit on processes counts those of the sandbox alone, not all of the user's.
    """

    path: str
    sizes: bool = True
    closes: bool = True
    pins: bool = True
    counts: bool = True

    @staticmethod
    def read(path: str, help_text: str, kernel: str) -> Bubblewrap:
        """Read what it can from its help, and from the kernel's release."""
        release = tuple(int(number) for number in re.findall(r"\d+", kernel)[:2])
        options = (word in help_text for word in ("--size ", "--disable-userns", "--ro-bind-fd "))
        return Bubblewrap(path, *options, counts=release >= (5, 14))


def find_bubblewrap(places: Sequence[str] = _PLACES) -> str:
    """Return where bubblewrap is, looked for in fixed places only, or an empty text."""
    return next((path for path in places if os.access(path, os.X_OK)), "")


def wrapped(
    bwrap: Bubblewrap,
    policy: Policy,
    argv: Sequence[str],
    *,
    kept: Sequence[Kept] = (),
    report: int = -1,
    calls: int = -1,
) -> list[str]:
    """Return the command line that runs `argv` in a sandbox.

    `report` is a handle that takes bubblewrap's word on its first process, `calls` one of a system call filter.
    """
    return [
        bwrap.path,
        *_isolation(bwrap, policy),
        *_system(policy),
        *_devices(bwrap, policy),
        *_paths(policy),
        *(_kept(kept) if bwrap.pins else ()),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *(("--info-fd", str(report)) if report >= 0 else ()),
        *(("--seccomp", str(calls)) if calls >= 0 else ()),
        *("--", *limited(policy, argv, _WALL * policy.processes if bwrap.counts else 0)),
    ]


def limited(policy: Policy, argv: Sequence[str], processes: int) -> list[str]:
    """Return the command line that runs `argv` with limits that hold for each process.

    `processes` is how many the user may have, 0 for no limit: outside of a user namespace it counts all of them.
    """
    kibibytes = str(policy.memory_bytes // 1024)
    return ["/bin/sh", "-c", _LIMITS, "sh", kibibytes, str(processes), *argv]


def _isolation(bwrap: Bubblewrap, policy: Policy) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL")
    yield from ("--uid", str(UID), "--gid", str(UID), "--hostname", "sandbox")
    if bwrap.closes:
        yield "--disable-userns"
    if not policy.terminal:  # a terminal is one of its own, and can put words into nobody else's
        yield "--new-session"


def _system(policy: Policy) -> Iterator[str]:
    for place in _SYSTEM:
        path = Path(place)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), place)
        elif path.is_dir():
            yield from ("--ro-bind", place, place)
    if policy.etc:
        yield from ("--ro-bind", policy.etc, "/etc")


def _devices(bwrap: Bubblewrap, policy: Policy) -> Iterator[str]:
    size = ("--size", str(policy.scratch_bytes)) if bwrap.sizes else ()
    yield from ("--proc", "/proc", "--dev", "/dev", *size, "--tmpfs", "/dev/shm")  # noqa: S108 - the sandbox's own
    for source, place in ((policy.scratch, "/tmp"), (policy.home, HOME)):  # noqa: S108 - the sandbox's own
        yield from ("--bind", source, place) if source else (*size, "--tmpfs", place)
    yield from ("--dir", "/run", "--symlink", "/run", "/var/run", "--symlink", "/tmp", "/var/tmp")  # noqa: S108
    if policy.socket:
        yield from ("--bind", policy.socket, PROXY_SOCKET)
    if policy.line:
        yield from ("--bind", policy.line, LINE)
    for folder in policy.commands:
        yield from ("--ro-bind", folder, f"{COMMANDS}/{Path(folder).name}")


def _paths(policy: Policy) -> Iterator[str]:
    """Bind what is further up first, so that what is named below it lies over it."""
    given = [
        *((path, 0, ("--tmpfs", path)) for path in policy.hidden if _covered(path, policy)),
        *((path, 1, ("--ro-bind-try", path, path)) for path in policy.readable),
        *((path, 2, ("--bind", path, path)) for path in policy.writable),
    ]
    for _, _, words in sorted(given, key=lambda one: (one[0].count("/"), one[1])):
        yield from words


def _kept(kept: Sequence[Kept]) -> Iterator[str]:
    """Bind by handle, never by path: a link put there meanwhile would bring its target in.

    Bubblewrap closes these handles; any other way would leave inside a way out.
    """
    for one in kept:
        yield from ("--bind-fd" if one.writable else "--ro-bind-fd", str(one.handle), one.path)


def _covered(path: str, policy: Policy) -> bool:
    return any(is_below(path, one) for one in (*policy.readable, *policy.writable))


def is_below(path: str, top: str) -> bool:
    """Tell whether a path is `top` or lies in it."""
    return path == top or path.startswith(top.rstrip("/") + "/")
