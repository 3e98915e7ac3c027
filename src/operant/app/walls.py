"""Put up what was decided: a policy and a command become exactly what is executed, by either kind of sandbox."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from operant.kit import sandbox
from operant.kit.oversight import Allotment, Oversight
from operant.kit.pinned import pinned
from operant.kit.sandbox import Bubblewrap, Policy, is_below
from operant.kit.seccomp import FAMILIES, seccomp_filter
from operant.sdk.extension import Launch

PORT = 3128
"""Where a proxy is found inside; nobody else is there to have taken it."""

_KIT = Path(sandbox.__file__).parent
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts")
_VISIBLE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/proc")
_NAMES = ("/etc/gitconfig", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf")

_log = logging.getLogger("operant.sandbox")


@asynccontextmanager
async def bubblewrapped(bwrap: Bubblewrap, policy: Policy, command: Launch, directory: str) -> AsyncGenerator[Launch]:
    """Wrap a command in bubblewrap; what programs obey in `directory` stays as it is."""
    argv = command.argv
    if policy.socket:
        forward = str(_KIT / "forward.py")
        argv = (sys.executable, "-I", "-S", forward, str(PORT), sandbox.PROXY_SOCKET, *argv)
    allotment = Allotment(policy.processes, policy.memory_bytes)
    with pinned(directory) as kept, _readable_once(seccomp_filter(os.uname().machine, FAMILIES)) as calls:
        async with Oversight(allotment, _breached) as watch:
            words = sandbox.wrapped(bwrap, policy, argv, kept=kept, report=watch.report, calls=calls)
            inherited = (watch.report, calls, *(one.handle for one in kept))
            yield Launch(
                argv=tuple(words),
                cwd=command.cwd,
                env=command.env,
                contained=True,
                fds=tuple(one for one in inherited if one >= 0),
            )


@asynccontextmanager
async def landlocked(policy: Policy, command: Launch) -> AsyncGenerator[Launch]:
    """Confine a command by Landlock; nothing of the network is there."""
    places = {"HOME": policy.home or "/", "TMPDIR": policy.scratch or "/"}
    script = str(_KIT / "landlock.py")
    words = (sys.executable, "-I", "-S", script, _order(policy), *sandbox.limited(policy, command.argv, 0))
    yield Launch(argv=words, cwd=command.cwd, env={**command.env, **places})


def _order(policy: Policy) -> str:
    from operant.kit import landlock  # as it is seldom needed
    from operant.kit.likeness import CHOSEN

    chosen = (str(path) for pattern in CHOSEN for path in Path("/etc").glob(pattern))
    # Nothing can be taken out of what is shown here, so what holds our home is not shown at all.
    shown = (path for path in policy.readable if not any(is_below(one, path) for one in policy.hidden))
    own = (path for path in (policy.home, policy.scratch) if path)
    return landlock.order(
        (*_VISIBLE, *_NAMES, *chosen, *shown),
        (*_DEVICES, *policy.writable, *own),
        seccomp_filter(os.uname().machine, ()),
    )


@contextmanager
def _readable_once(data: bytes) -> Generator[int]:
    """Yield a handle that `data` can be read from; -1 when there is none."""
    if not data:
        yield -1
        return
    handle = os.memfd_create("filter", os.MFD_CLOEXEC)
    try:
        os.write(handle, data)
        os.lseek(handle, 0, os.SEEK_SET)
        yield handle
    finally:
        os.close(handle)


def _breached(reason: str) -> None:
    _log.warning("a sandboxed command was ended: it had %s", reason)
