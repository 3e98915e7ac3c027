"""Filters of system calls for sandboxes, as programs of the kernel's packet filter (`seccomp(2)`).

They close what namespaces and paths do not: kinds of sockets that know no network namespace, keys of the kernel,
interfaces with a record of escapes, and putting words into a terminal. A call that is closed fails with EPERM.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
FAMILIES = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
"""Those that stay inside of a network namespace."""

_LOAD, _JUMP, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_OTHER_ABI = 0x40000000
"""Numbers from here on are calls of x86-64's second kind (x32); no other machine has such numbers."""


class _Machine(NamedTuple):
    arch: int
    socket: int
    ioctl: int
    closed: tuple[int, ...]


# add_key request_key keyctl, bpf perf_event_open userfaultfd, kexec_load kexec_file_load, init_module finit_module
# delete_module, open_by_handle_at, io_uring_setup io_uring_enter io_uring_register
_MACHINES = {
    "x86_64": _Machine(0xC000003E, 41, 16, (248, 249, 250, 321, 298, 323, 246, 320, 175, 313, 176, 304, 425, 426, 427)),
    "aarch64": _Machine(
        0xC00000B7, 198, 29, (217, 218, 219, 280, 241, 282, 104, 294, 105, 273, 106, 265, 425, 426, 427)
    ),
}


def seccomp_filter(machine: str, families: Sequence[int]) -> bytes:
    """Return the filter for a kind of machine (`os.uname().machine`), or nothing where we have none.

    Sockets can be made of these `families` only.
    """
    kind = _MACHINES.get(machine)
    if kind is None:
        return b""
    return _assembled(
        [
            _Step(_LOAD, _ARCH),
            _Step(_EQUAL, kind.arch, no="refuse"),
            _Step(_LOAD, _NUMBER),
            _Step(_AT_LEAST, _OTHER_ABI, yes="refuse"),
            *(_Step(_EQUAL, number, yes="refuse") for number in kind.closed),
            _Step(_EQUAL, kind.ioctl, yes="ioctl"),
            _Step(_EQUAL, kind.socket, yes="socket", no="allow"),
            _Step(_LOAD, _SECOND, name="ioctl"),
            _Step(_EQUAL, _TIOCSTI, yes="refuse"),
            _Step(_EQUAL, _TIOCLINUX, yes="refuse", no="allow"),
            _Step(_LOAD, _FIRST, name="socket"),
            *(_Step(_EQUAL, family, yes="allow") for family in families),
            _Step(_JUMP, yes="refuse"),
            _Step(_RETURN, _ALLOW, name="allow"),
            _Step(_RETURN, _REFUSE, name="refuse"),
        ]
    )


class _Step(NamedTuple):
    """An instruction; a comparison goes on at the step named `yes` or `no`, or at the next."""

    code: int
    value: int = 0
    yes: str = ""
    no: str = ""
    name: str = ""


def _assembled(steps: Sequence[_Step]) -> bytes:
    places = {step.name: place for place, step in enumerate(steps) if step.name}
    made: list[bytes] = []
    for place, step in enumerate(steps, 1):  # distances count from the step after this one
        yes, no = (places[name] - place if name else 0 for name in (step.yes, step.no))
        if step.code == _JUMP:
            made.append(struct.pack("HBBI", _JUMP, 0, 0, yes))
        else:
            made.append(struct.pack("HBBI", step.code, yes, no, step.value))
    return b"".join(made)
