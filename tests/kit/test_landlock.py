"""The weaker sandbox, by its script; and the filter of system calls that both have."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

import pytest

from operant.kit import landlock, proc
from operant.kit.seccomp import FAMILIES, seccomp_filter

SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/proc", sys.prefix, sys.base_prefix)
MACHINE = os.uname().machine
LANDLOCK = pytest.mark.skipif(
    landlock.version() < landlock.LEAST or not seccomp_filter(MACHINE, FAMILIES),
    reason="needs Landlock 3 (a kernel from 6.2 on that has it switched on), on x86-64 or arm64",
)


async def confined(command: str, cwd: Path) -> str:
    calls = seccomp_filter(MACHINE, ())
    order = landlock.order(SYSTEM, (str(cwd), "/dev/null"), calls)
    argv = [sys.executable, "-I", "-S", landlock.__file__, order, "/bin/sh", "-c", command]
    finished = await proc.run(argv, cwd=str(cwd), env={"PATH": "/usr/bin:/bin"}, timeout_s=20)
    finished.output.close()
    return finished.output.head


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (tmp_path / "secret").write_text("CANARY")
    return made


@LANDLOCK
async def test_only_the_named_files_are_there(work: Path) -> None:
    secret = work.parent / "secret"
    said = await confined(
        f"echo here > mine; cat mine; cat {secret} /etc/shadow; ls {work.parent} /root; echo x > {secret}; "
        f"truncate -s 0 {secret}; mv {secret} .; ln {secret} hard; ln -s {secret} soft; cat soft; rm {secret}; "
        f"mkdir {work.parent}/new; echo done",
        work,
    )
    assert said.startswith("here\n")
    assert said.endswith("done\n")
    assert said.count("denied") + said.count("cross-device") >= 9, said
    assert secret.read_text() == "CANARY"
    assert not (work.parent / "new").exists()


@LANDLOCK
async def test_other_processes_cannot_be_looked_into_or_signalled(work: Path) -> None:
    pid = os.getpid()
    said = await confined(f"cat /proc/{pid}/environ /proc/{pid}/mem; kill -0 {pid} && echo SIGNALLED; id", work)
    assert "PATH" not in said
    assert said.count("denied") == 2
    if landlock.version() >= 6:
        assert "SIGNALLED" not in said
    else:
        assert "signalled" in landlock.lacking(landlock.version())


@LANDLOCK
async def test_no_socket_can_be_made_but_a_pair(work: Path) -> None:
    script = (
        "import socket\n"
        "for family in (1, 2, 10, 16, 17, 40):\n"
        "    try: socket.socket(family); print('MADE', family)\n"
        "    except OSError as error: print(family, error.errno)\n"
        "socket.socketpair(); print('pair')\n"
    )
    (work / "x.py").write_text(script)
    said = await confined(f"{sys.executable} -I x.py", work)
    assert said == "1 1\n2 1\n10 1\n16 1\n17 1\n40 1\npair\n"


async def test_without_a_filter_nothing_is_run(work: Path) -> None:
    argv = [sys.executable, "-I", "-S", landlock.__file__, landlock.order((), (), b""), "/bin/touch", "ran"]
    finished = await proc.run(argv, cwd=str(work), env={}, timeout_s=20)
    finished.output.close()
    assert finished.code == 127
    assert finished.output.head.startswith("This command was not run, as it could not be confined:")
    assert list(work.iterdir()) == []


@LANDLOCK
async def test_a_program_that_is_not_there_is_said(work: Path) -> None:
    argv = [
        sys.executable,
        "-I",
        "-S",
        landlock.__file__,
        landlock.order(SYSTEM, (), seccomp_filter(MACHINE, FAMILIES)),
    ]
    finished = await proc.run([*argv, "/no/such"], cwd=str(work), env={}, timeout_s=20)
    finished.output.close()
    assert (finished.code, finished.output.head) == (127, "/no/such: No such file or directory\n")


class Machine:
    """Run a filter as the kernel does, so that other machines than this one are tested too."""

    def __init__(self, program: bytes) -> None:
        self._steps = list(struct.iter_unpack("HBBI", program))

    def refuses(self, arch: int, number: int, *arguments: int) -> bool:
        data = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *([0] * (6 - len(arguments))))
        place = held = 0
        while True:
            code, yes, no, value = self._steps[place]
            place += 1
            if code == 0x20:
                held = int.from_bytes(data[value : value + 4], "little")
            elif code == 0x05:
                place += value
            elif code in (0x15, 0x35):
                place += yes if (held == value if code == 0x15 else held >= value) else no
            else:
                return value != 0x7FFF0000


@pytest.mark.parametrize(
    ("name", "arch", "numbers"),
    [
        ("x86_64", 0xC000003E, {"socket": 41, "ioctl": 16, "keyctl": 250, "read": 0, "io_uring": 425, "bpf": 321}),
        ("aarch64", 0xC00000B7, {"socket": 198, "ioctl": 29, "keyctl": 219, "read": 63, "io_uring": 425, "bpf": 280}),
    ],
)
def test_the_filter_of_each_machine(name: str, arch: int, numbers: dict[str, int]) -> None:
    machine = Machine(seccomp_filter(name, FAMILIES))
    assert not machine.refuses(arch, numbers["read"])
    assert machine.refuses(0x40000003, numbers["read"])  # 32 bit: other numbers, so other calls
    for closed in ("keyctl", "io_uring", "bpf"):
        assert machine.refuses(arch, numbers[closed])
    assert machine.refuses(arch, numbers["read"] | 0x40000000)
    assert machine.refuses(arch, numbers["ioctl"], 0, 0x5412)
    assert not machine.refuses(arch, numbers["ioctl"], 0, 0x5413)
    assert not machine.refuses(arch, numbers["socket"], socket.AF_INET, 1)
    assert machine.refuses(arch, numbers["socket"], 40, 1)
    assert Machine(seccomp_filter(name, ())).refuses(arch, numbers["socket"], socket.AF_INET, 1)


def test_a_machine_that_we_do_not_know_has_no_filter() -> None:
    assert seccomp_filter("vax", FAMILIES) == b""
