"""Files below a root and nowhere else: the list D of the threats."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from operant.kit import beneath
from operant.kit.beneath import Absent, Beneath, Changed, FileError, Outside, Protected, Unfit

LIMIT = 1_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    (made / "note.txt").write_text("hello")
    (made / "sub").mkdir()
    (made / "sub" / "deep.txt").write_text("deep")
    (tmp_path / "secret.txt").write_text("CANARY")
    return made


@pytest.fixture(params=["openat2", "walk"])
def files(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Beneath]:
    """Files by each of the two ways; both keep the same promises."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "_openat2", lambda: None)
    with Beneath(str(root), protected=(".git/hooks/**", ".git/config", ".env*", "authorized_keys")) as opened:
        yield opened


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def within(seconds: float, work: Callable[[], object]) -> None:
    begun = time.monotonic()
    with pytest.raises(FileError):
        work()
    assert time.monotonic() - begun < seconds


ESCAPES = [
    "../secret.txt",
    "sub/../../secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/dev/fd/0",
    "~/secret.txt",
    "~root/x",
    "$HOME/x",
    "${HOME}/x",
    "file:///etc/passwd",
    "C:/Windows/win.ini",
    "note.txt\0.png",
    "..",
    "../root/../secret.txt",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_d1_no_path_leads_out(files: Beneath, root: Path, path: str) -> None:
    """D1, for reading, writing, listing and making."""
    for attempt in (
        lambda: files.read_bytes(path, LIMIT),
        lambda: files.write_atomic(path, b"x"),
        lambda: files.mkdirs(path),
        lambda: files.listdir(path),
        lambda: files.stat(path),
    ):
        with pytest.raises(FileError):
            attempt()
    assert (root.parent / "secret.txt").read_text() == "CANARY"
    assert names(root.parent) == ["root", "secret.txt"]


def test_paths_below_may_be_said_in_several_ways(files: Beneath, root: Path) -> None:
    for path in ("note.txt", "./note.txt", "sub/../note.txt", "sub//..//note.txt", str(root / "note.txt")):
        assert files.read_bytes(path, LIMIT) == b"hello"
        assert files.name_of(path) == "note.txt"


@pytest.mark.parametrize("target", ["../secret.txt", "/etc/passwd", "/proc/self/environ", "/proc/self/root/etc/passwd"])
def test_d2_a_link_out_is_neither_read_nor_written(files: Beneath, root: Path, target: str) -> None:
    """D2."""
    (root / "link").symlink_to(target)
    with pytest.raises(Outside):
        files.read_bytes("link", LIMIT)
    with pytest.raises(Outside):
        files.write_atomic("link", b"x")
    assert (root / "link").is_symlink()
    assert (root.parent / "secret.txt").read_text() == "CANARY"


def test_d5_a_linked_directory_leads_nowhere(files: Beneath, root: Path) -> None:
    """D5: not out, and for writing not even within, so that a protected name has no other name."""
    (root / "out").symlink_to("..")
    (root / "within").symlink_to("sub")
    with pytest.raises(FileError):
        files.read_bytes("out/secret.txt", LIMIT)
    with pytest.raises(FileError):
        files.listdir("out")
    for path in ("out/new.txt", "within/new.txt", "out/a/b.txt"):
        with pytest.raises(FileError):
            files.write_atomic(path, b"x")
        with pytest.raises(FileError):
            files.mkdirs(path)
    assert names(root.parent) == ["root", "secret.txt"]
    assert names(root / "sub") == ["deep.txt"]


def test_d5_a_dangling_link_is_not_created_through(files: Beneath, root: Path) -> None:
    """D5."""
    (root / "later").symlink_to("../made.txt")
    with pytest.raises(Outside):
        files.write_atomic("later", b"x")
    assert not (root.parent / "made.txt").exists()


def test_a_link_within_is_read_where_the_system_confines_it(root: Path) -> None:
    (root / "alias").symlink_to("sub/deep.txt")
    with Beneath(str(root)) as files:
        assert files.read_bytes("alias", LIMIT) == b"deep"


@pytest.mark.skipif(sys.platform != "linux", reason="needs renameat2 to swap")
@pytest.mark.parametrize("swapped", ["v", "v/f"])
def test_d3_a_link_swapped_in_while_we_open_wins_nothing(files: Beneath, root: Path, swapped: str) -> None:
    """D3: 2,000 tries of reading and writing while a thread swaps a directory or a file with a link out."""
    outside = root.parent / "outside"
    (root / "v").mkdir()
    outside.mkdir()
    for directory, words in ((root / "v", "fine"), (outside, "CANARY")):
        (directory / "f").write_text(words)
    fooled = 0
    with _swapping(root / swapped, outside / "f" if swapped == "v/f" else outside):
        for number in range(2000):
            fooled += _naively(root / "v" / "f") == "CANARY"
            try:
                assert files.read_bytes("v/f", LIMIT) != b"CANARY"
                if number % 4 == 0:
                    files.write_atomic("v/f", b"ours")
            except FileError:
                continue
    assert (outside / "f").read_text() == "CANARY"
    assert names(outside) == ["f"]
    assert fooled, "the race was never on"


@contextlib.contextmanager
def _swapping(target: Path, outside: Path) -> Iterator[None]:
    """Let a thread exchange a path and a link out, for ever and at once."""
    exchange = ctypes.CDLL(None).renameat2
    link = target.parents[0 if target.name == "v" else 1] / "link"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            if not link.is_symlink() and not target.is_symlink():  # a write has replaced it
                link.unlink(missing_ok=True)
                link.symlink_to(outside)
            exchange(-100, os.fsencode(link), -100, os.fsencode(target), 2)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _naively(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def test_d4_what_has_two_names_is_not_written(files: Beneath, root: Path) -> None:
    """D4."""
    os.link(root.parent / "secret.txt", root / "hard.txt")
    with pytest.raises(Outside, match="hard links"):
        files.write_atomic("hard.txt", b"x")
    assert (root.parent / "secret.txt").read_text() == "CANARY"


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        "sub/.env",
        ".ENV",
        ".Env.",
        ".env ",
        ".env::$DATA",
        ".env:stream",
        "\uff0eenv",
        ".e\u200bnv",
        ".git/hooks/pre-commit",
        ".GIT/Hooks/pre-commit",
        "vendored/.git/hooks/x/y",
        ".git /hooks/x",
        ".git/hooks",
        ".git/config",
        ".git\\config",
        "x/../.git/config",
        ".ﬁle/../.git/config",
        "authorized_keys",
        "AUTHORIZED_KEYS",
        "authorized\uff3fkeys",
    ],
)
def test_d6_d7_protected_names_are_not_written_however_they_are_spelled(files: Beneath, root: Path, path: str) -> None:
    """D6 (they are not there yet) and D7."""
    before = names(root)
    with pytest.raises(Protected):
        files.write_atomic(path, b"x")
    with pytest.raises(Protected):
        files.mkdirs(path)
    assert names(root) == before


@pytest.mark.parametrize("path", ["env", "environment.py", ".gitignore", "git/config", ".github/config", "a.env.txt"])
def test_names_that_only_look_alike_are_free(files: Beneath, path: str) -> None:
    files.write_atomic(path, b"x")
    assert files.read_bytes(path, LIMIT) == b"x"


def test_d7_protection_is_the_same_for_composed_and_decomposed_names(root: Path) -> None:
    with Beneath(str(root), protected=("clé",)) as files:
        for path in ("cl\u00e9", "cle\u0301", "CLÉ"):
            with pytest.raises(Protected):
                files.write_atomic(path, b"x")


def test_d9_odd_things_are_refused_at_once(files: Beneath, root: Path) -> None:
    """D9: a pipe, a socket, a directory, and 100 GB of nothing."""
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(root)  # the name of a socket may not be long
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
    with (root / "sparse").open("wb") as sparse:
        sparse.truncate(100 * 2**30)
    for path in ("pipe", "socket", "sub", "sparse", "."):
        within(2, lambda path=path: files.read_bytes(path, LIMIT))
    for path in ("pipe", "socket", "sub", "."):
        within(2, lambda path=path: files.write_atomic(path, b"x"))
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device needs root")
def test_d9_devices_are_refused(files: Beneath, root: Path) -> None:
    """D9."""
    try:
        os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this system makes no devices")
    within(2, lambda: files.read_bytes("zero", LIMIT))
    within(2, lambda: files.write_atomic("zero", b"x"))


def test_a_file_without_an_honest_size_is_read_up_to_the_limit() -> None:
    with Beneath("/proc/self") as files, pytest.raises(Unfit):
        files.read_bytes("smaps", 10)


def test_d8_writing_keeps_the_mode_and_drops_what_is_dangerous(files: Beneath, root: Path) -> None:
    """D8: no setuid bit survives."""
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o4755)
    files.write_atomic("run.sh", b"new")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o755
    files.write_atomic("a/b/new.txt", b"made")
    assert (root / "a/b/new.txt").read_text() == "made"
    assert (root / "a/b/new.txt").stat().st_mode & 0o111 == 0


def test_writing_is_whole_or_not_at_all(files: Beneath, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a torn file nor a temporary one is left when the disk fails."""

    def full(*arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="disk is full"):
        files.write_atomic("note.txt", b"x" * 1000)
    assert (root / "note.txt").read_text() == "hello"
    assert names(root) == ["note.txt", "sub"]


def test_d12_a_file_that_changed_meanwhile_is_not_replaced(files: Beneath, root: Path) -> None:
    """D12."""
    data, version = files.read("note.txt", LIMIT)
    (root / "note.txt").write_text("HELLO")
    with pytest.raises(Changed):
        files.write_atomic("note.txt", data + b"!", expect=version)
    assert (root / "note.txt").read_text() == "HELLO"
    (root / "note.txt").unlink()
    with pytest.raises(Changed):
        files.write_atomic("note.txt", data, expect=version)
    assert names(root) == ["sub"]


def test_a_named_root_elsewhere_is_open_and_confined_too(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "out").symlink_to("../secret.txt")
    (root / "shared").symlink_to("/etc")  # whatever stands there is not what counts
    with Beneath(str(root), roots={"shared": str(elsewhere)}, protected=(".env*",)) as files:
        files.write_atomic("shared/a.txt", b"x")
        assert (elsewhere / "a.txt").read_text() == "x"
        assert [entry.path for entry in files.listdir("shared")] == ["a.txt", "out"]
        for path in ("shared/out", "shared/../../secret.txt", "shared/passwd"):
            with pytest.raises(FileError):
                files.read_bytes(path, LIMIT)
        with pytest.raises(Protected):
            files.write_atomic("shared/.env", b"x")


def test_walks_stay_below_and_shut_what_is_named(files: Beneath, root: Path) -> None:
    (root / "loop").symlink_to(".")
    (root / "out").symlink_to("..")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "x.js").write_text("x")
    os.mkfifo(root / "pipe")
    skip = frozenset({"node_modules"})
    assert [found.path for found in files.walk(".", skip)] == ["note.txt", "sub/deep.txt"]
    assert {entry.path: entry.kind for entry in files.tree(".", 2, skip)} == {
        "loop": "link",
        "node_modules": "directory",
        "note.txt": "file",
        "out": "link",
        "pipe": "other",
        "sub": "directory",
        "sub/deep.txt": "file",
    }
    assert "sub/deep.txt" not in [entry.path for entry in files.tree(".", 1)]


def test_errors_are_sentences(files: Beneath) -> None:
    with pytest.raises(Absent, match=r"^'no/such' does not exist\.$"):
        files.read_bytes("no/such", LIMIT)
    with pytest.raises(Unfit, match="not a directory"):
        files.read_bytes("note.txt/x", LIMIT)
    with pytest.raises(Unfit, match="too long"):
        files.write_atomic("x" * 300, b"")
    with pytest.raises(FileError, match="file name"):
        files.write_atomic("\ud800", b"")


def test_no_handle_is_left_open(root: Path) -> None:
    before = len(names(Path("/proc/self/fd")))
    for _ in range(20):
        with Beneath(str(root)) as files:
            files.read_bytes("note.txt", LIMIT)
            files.write_atomic("a/b", b"x")
            next(iter(files.walk(".")))
            for path in ("sub", "missing/x", "../x"):
                with pytest.raises(FileError):
                    files.read_bytes(path, LIMIT)
    with pytest.raises(Absent):
        Beneath(str(root), roots={"shared": str(root / "none")})
    assert len(names(Path("/proc/self/fd"))) == before
