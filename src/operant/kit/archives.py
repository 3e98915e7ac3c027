"""List archives and judge what is in them: names, kinds and sizes, before anything is unpacked."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, NamedTuple, cast

MOST_ENTRIES = 10_000
MOST_BYTES = 500_000_000
LARGEST_ENTRY = 200_000_000
HIGHEST_RATIO = 200
_RATIO_FROM = 10_000_000  # a small file of zeros shrinks to nothing, and hurts nobody
_SHOWN = 1_000
_LOOKED_AT = 100_000
_NAME_CHARS = 1_000
_DRIVE = re.compile(r"^[A-Za-z]:")
_ARCHIVES = (".zip", ".jar", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar", ".zst", ".whl")
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID
_PACKED = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


class BadArchive(Exception):
    """Say in one sentence why an archive is not unpacked."""


class Item(NamedTuple):
    """One entry as the archive has it; `kind` is `file`, `directory`, `link`, `device` or `encrypted`."""

    name: str
    size: int
    kind: str
    mode: int
    open: Callable[[], IO[bytes]]


class Judged(NamedTuple):
    """One entry, and why it would not be unpacked (empty: it would)."""

    item: Item
    fault: str


class Judgement(NamedTuple):
    """All that was looked at, what it comes to, and why the whole is not unpacked (empty: it is)."""

    entries: list[Judged]
    total: int
    fault: str


def list_archive(file: BinaryIO, path: str) -> str:
    """Return the entries of an archive as lines, with what is wrong with them; nothing is unpacked."""
    judgement = judge(file, path)
    packed = file.seek(0, 2)
    entries = judgement.entries
    lines = [f"{one.item.size:>12,} {_shown(one)}" for one in entries[:_SHOWN]]
    if len(entries) > _SHOWN:
        lines.append(f"[and {len(entries) - _SHOWN:,} more]")
    if nested := sum(one.item.name.lower().endswith(_ARCHIVES) for one in entries):
        lines.append(f"[{nested:,} of them are archives themselves; they stay packed]")
    if judgement.fault:
        lines.append(f"[not to be unpacked: {judgement.fault}]")
    head = f"[archive: {len(entries):,} entries, {packed:,} bytes packed, {judgement.total:,} unpacked]"
    return "\n".join((head, *lines))


def judge(file: BinaryIO, path: str, writable: Callable[[str], str] = lambda name: "") -> Judgement:
    """Look at every entry; `writable` returns why a name may not be written. Stops where limits are passed.

    Raises what the readers of the formats raise when an archive is damaged.
    """
    entries: list[Judged] = []
    names: dict[str, str] = {}
    total, fault = 0, ""
    packed = max(file.seek(0, 2), 1)
    try:
        for item in items(file, path):
            one = Judged(item, fault_of(item) or _taken(names, item) or writable(item.name))
            entries.append(one)
            total += item.size
            fault = fault or (f"{_cut(item.name)} {one.fault}" if one.fault else "")
            fault = fault or _excess(len(entries), total, packed)
            if len(entries) >= _LOOKED_AT:
                break
    except BadArchive as error:
        fault = str(error)
    return Judgement(entries, total, fault)


def items(file: BinaryIO, path: str) -> Iterator[Item]:
    """Yield the entries of an archive; `open` of each works until the next one. Raises `BadArchive`."""
    file.seek(0)
    magic = file.read(2)
    file.seek(0)
    if magic == b"PK":
        yield from _zipped(file)
    elif opener := _PACKED.get(magic):

        def opened() -> _Bounded:
            file.seek(0)
            return _Bounded(cast("IO[bytes]", opener(file)))

        yield from _compressed(opened, path)
    else:
        yield from _tarred(_Bounded(file))


def _zipped(file: BinaryIO) -> Iterator[Item]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16

            def opened(info: zipfile.ZipInfo = info) -> IO[bytes]:
                return archive.open(info)

            # The name as it was written: `filename` has backslashes turned on some systems, and ends at a NUL.
            yield Item(info.orig_filename, info.file_size, _zip_kind(info, mode), mode, opened)


def _zip_kind(info: zipfile.ZipInfo, mode: int) -> str:
    kind = stat.S_IFMT(mode)
    if kind == stat.S_IFLNK:
        return "link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "device"
    if info.is_dir():
        return "directory"
    return "encrypted" if info.flag_bits & 1 else "file"


def _compressed(opened: Callable[[], _Bounded], path: str) -> Iterator[Item]:
    """Yield the entries of a compressed tar file, or the one file that was compressed."""
    with opened() as data:
        block = data.read(tarfile.BLOCKSIZE)
    if _is_tar(block):
        with opened() as data:
            yield from _tarred(data)
        return
    with opened() as data:
        size = data.skip()
    name = path.rpartition("/")[2]
    yield Item(name.rpartition(".")[0] or name, size, "file", 0, lambda: cast("IO[bytes]", opened()))


def _is_tar(block: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _tarred(data: _Bounded) -> Iterator[Item]:
    with tarfile.open(fileobj=cast("IO[bytes]", data), mode="r|", bufsize=1 << 16) as archive:
        for member in archive:
            kind = "file" if member.isreg() else "directory" if member.isdir() else ""
            kind = kind or ("link" if member.issym() or member.islnk() else "device")

            def opened(member: tarfile.TarInfo = member) -> IO[bytes]:
                found = archive.extractfile(member)
                if found is None:
                    raise BadArchive(f"{_cut(member.name)} has no content.")
                return found

            yield Item(member.name, member.size, kind, member.mode, opened)


class _Bounded:
    """A stream that ends in words when it grows too long."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._read = 0

    def __enter__(self) -> _Bounded:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave the file below open: others go on with it."""

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(min(size, 1 << 20) if size >= 0 else 1 << 20)
        self._read += len(data)
        if self._read > MOST_BYTES:
            raise BadArchive(f"it unpacks to more than {MOST_BYTES:,} bytes")
        return data

    def skip(self) -> int:
        """Read to the end, and return how much there was."""
        while self.read(1 << 20):
            pass
        return self._read


def fault_of(item: Item) -> str:
    """Return why an entry is not unpacked, whatever the others are."""
    name = item.name
    parts = name.replace("\\", "/").split("/")
    if item.kind in ("link", "device", "encrypted"):
        return {"link": "is a link", "device": "is a device", "encrypted": "is encrypted"}[item.kind]
    if item.kind == "file" and item.mode & _SPECIAL_BITS:
        return "has the setuid or setgid bit"
    if name.startswith(("/", "\\", "~")) or _DRIVE.match(name):
        return "has an absolute name"
    if ".." in parts or "\\" in name:
        return "leads out of the directory"
    if not name.strip("/. ") or len(name) > _NAME_CHARS or any(unicodedata.category(char) == "Cc" for char in name):
        return "has no name that a file can have"
    return f"is larger than {LARGEST_ENTRY:,} bytes" if item.size > LARGEST_ENTRY else ""


def _taken(names: dict[str, str], item: Item) -> str:
    """Return why two entries cannot both be there; forgiving file systems take `A` and `a` for one."""
    folded = unicodedata.normalize("NFKC", item.name.strip("/")).casefold()
    above = folded.split("/")
    parents = ["/".join(above[:depth]) for depth in range(1, len(above))]
    if any(names.get(parent) == "file" for parent in parents):
        return "is below a file"
    kind = names.get(folded)
    names.update(dict.fromkeys(parents, "directory"))
    names[folded] = item.kind
    return "" if kind is None or kind == item.kind == "directory" else "is there twice"


def _excess(entries: int, total: int, packed: int) -> str:
    if entries > MOST_ENTRIES:
        return f"it has more than {MOST_ENTRIES:,} entries"
    if total > MOST_BYTES:
        return f"it unpacks to more than {MOST_BYTES:,} bytes"
    if total > _RATIO_FROM and total > HIGHEST_RATIO * packed:
        return f"it grows more than {HIGHEST_RATIO} times when it is unpacked"
    return ""


def _shown(one: Judged) -> str:
    mark = "/" if one.item.kind == "directory" and not one.item.name.endswith("/") else ""
    return f"{_cut(one.item.name)}{mark}{f'  [refused: it {one.fault}]' if one.fault else ''}"


def _cut(name: str) -> str:
    name = name.encode("utf-8", "replace").decode()
    return name if len(name) <= 200 else f"{name[:200]}…"
