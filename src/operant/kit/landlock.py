"""Confine a program by Landlock and a system call filter, where there are no namespaces to put it into; then run it.

Run as a script, in a Python without `site`: `landlock.py ORDER PROGRAM [ARGUMENT...]`, ORDER being what `order` made.
Files beside the named ones cannot be opened, changed or cut; no socket can be made; other processes cannot be looked
into. It cannot hide the names of processes and the properties of files, cannot give a `/tmp` of its own, and binds
memory and processes one by one only. Whatever the system lacks ends the run: nothing runs half confined.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import struct
import sys

LEAST = 3
"""The version of the interface that we need: before it, any file could be cut to nothing."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_CAPABILITIES = 0x20080522
_BENEATH = 1
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_RIGHTS = (1 << 15) - 1
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_NETWORK, _SCOPES = 3, 3
"""All of TCP; abstract sockets and signals."""


class Missing(Exception):
    """Say in one sentence what the system lacks."""


def version() -> int:
    """Return the version of the interface, 0 where there is none."""
    return 0 if sys.platform != "linux" else max(0, _libc("syscall", _CREATE, 0, 0, 1))


def lacking(found: int) -> str:
    """Say what this confinement leaves open that namespaces would close."""
    signals = "" if found >= 6 else ", and can be signalled"
    return f"other processes are seen{signals}, a command's memory and processes are bound one by one only"


def order(readable: tuple[str, ...], writable: tuple[str, ...], calls: bytes) -> str:
    """Return the order that the script takes; `calls` is a filter of system calls."""
    return json.dumps({"readable": readable, "writable": writable, "calls": calls.hex()})


def confine(readable: list[str], writable: list[str], calls: bytes) -> None:
    """Confine this process and all that come of it. Raises `Missing`, and then nothing may be run."""
    found = version()
    if found < LEAST:
        raise Missing(f"The kernel's Landlock has version {found}, and {LEAST} is needed.")
    if not calls:
        raise Missing("There is no filter of system calls for this kind of machine.")
    handled = _RIGHTS | (_IOCTL if found >= 5 else 0)
    rules = _ruleset(found, handled)
    for path in readable:
        _allow(rules, path, _EXECUTE | _READ | _LIST)
    for path in writable:
        _allow(rules, path, handled)
    if _libc("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise Missing("The kernel cannot take rights away for good.")
    # Root could look into every process in spite of Landlock (CAP_PERFMON); what is given up does not come back.
    if _libc("capset", _address(struct.pack("Ii", _CAPABILITIES, 0)), _address(bytes(24))):
        raise Missing("The kernel keeps capabilities that were given up.")
    _asked(_RESTRICT, rules, 0)
    os.close(rules)
    steps = _address(calls)
    if _libc("prctl", _SECCOMP, _FILTER, _address(struct.pack("@HP", len(calls) // 8, steps.value or 0)), 0, 0):
        raise Missing("The kernel takes no filter of system calls.")


def _ruleset(found: int, handled: int) -> int:
    """Make an empty set of rules: files, and as far as the kernel knows them TCP, abstract sockets and signals."""
    words = [handled]
    if found >= 4:
        words.append(_NETWORK)
    if found >= 6:
        words.append(_SCOPES)
    return _asked(_CREATE, _address(struct.pack(f"{len(words)}Q", *words)), 8 * len(words), 0)


def _allow(rules: int, path: str, rights: int) -> None:
    """Allow rights beneath a path; one that is not there needs none."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(handle).st_mode):
        rights &= _OF_FILES
    _asked(_ADD, rules, _BENEATH, _address(struct.pack("=Qi", rights, handle)), 0)
    os.close(handle)


def _address(data: bytes) -> ctypes.c_void_p:
    """Return where bytes stand, as long as the answer is kept."""
    return ctypes.cast(ctypes.create_string_buffer(data, len(data)), ctypes.c_void_p)


def _asked(number: int, *arguments: int | ctypes.c_void_p) -> int:
    answer = _libc("syscall", number, *arguments)
    if answer < 0:
        raise Missing(f"The kernel refuses a part of the confinement ({os.strerror(ctypes.get_errno())}).")
    return answer


def _libc(function: str, *arguments: int | ctypes.c_void_p) -> int:
    call = getattr(ctypes.CDLL(None, use_errno=True), function)
    call.restype = ctypes.c_long
    return call(*(ctypes.c_long(one) if isinstance(one, int) else one for one in arguments))


def main(text: str, argv: list[str]) -> None:
    """Confine ourselves and become the program."""
    told = json.loads(text)
    try:
        confine(told["readable"], told["writable"], bytes.fromhex(told["calls"]))
        os.execvp(argv[0], argv)
    except Missing as error:
        os.write(2, f"This command was not run, as it could not be confined: {error}\n".encode())
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
