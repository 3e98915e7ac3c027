"""D8: archives are judged whole before a byte of them is written, and what they hide is refused in words."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from operant.kit import archives
from operant.kit.archives import BadArchive, judge, list_archive
from operant.kit.beneath import FileError
from operant.kit.unpack import Request, unpack
from tests.kit import papers


def member(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, link
    return info


def special_zip(mode: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("special")
        info.external_attr = mode << 16
        archive.writestr(info, "/etc/passwd")
    return out.getvalue()


HOSTILE = {
    "zip slip": (papers.zip_of({"../../evil": "x"}), "leads out"),
    "zip slip in the middle": (papers.zip_of({"a/../../evil": "x"}), "leads out"),
    "backslashes": (papers.zip_of({"..\\evil": "x"}), "leads out"),
    "absolute": (papers.zip_of({"/etc/evil": "x"}), "absolute"),
    "drive": (papers.zip_of({"C:/evil": "x"}), "absolute"),
    "home": (papers.zip_of({"~/evil": "x"}), "absolute"),
    "zip link": (special_zip(stat.S_IFLNK | 0o777), "is a link"),
    "zip device": (special_zip(stat.S_IFCHR | 0o666), "is a device"),
    "zip setuid": (special_zip(stat.S_IFREG | 0o4755), "setuid"),
    "two of a name": (papers.zip_of({"a/Same": "x", "A/same": "y"}), "is there twice"),
    "below a file": (papers.zip_of({"a": "x", "a/b": "y"}), "is below a file"),
    "hook": (papers.zip_of({".git/hooks/pre-commit": "x"}), "protected"),
    "key": (papers.zip_of({"deep/.SSH/authorized_keys": "x"}), "protected"),
    "grows": (papers.zip_of({"zeros": bytes(40_000_000)}), "grows more than 200 times"),
    "tar slip": (papers.tar_of((member("../evil"), b"x")), "leads out"),
    "tar link": (papers.tar_of((member("in", tarfile.SYMTYPE, link="/etc"), b"")), "is a link"),
    "tar hard link": (papers.tar_of((member("in", tarfile.LNKTYPE, link="x"), b"")), "is a link"),
    "tar device": (papers.tar_of((member("dev", tarfile.CHRTYPE), b"")), "is a device"),
    "tar pipe": (papers.tar_of((member("pipe", tarfile.FIFOTYPE), b"")), "is a device"),
    "tar setuid": (papers.tar_of((member("su", mode=0o4755), b"x")), "setuid"),
    "link, then through it": (
        papers.tar_of((member("d", tarfile.SYMTYPE, link=".."), b""), (member("d/evil"), b"x"), mode="w:gz"),
        "is a link",
    ),
    "control characters": (papers.tar_of((member("a\nb"), b"x")), "no name"),
    "no name": (papers.tar_of((member("./"), b"x")), "no name"),
}


def asked(root: Path, path: str, into: str = "out", *, dry_run: bool = False) -> dict[str, str]:
    protected = [".git/hooks/**", ".ssh/**"]
    return unpack(
        Request(root=str(root), roots={}, protected=protected, path=path, into=into, largest=10**9, dry_run=dry_run)
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_d8_what_is_hostile_is_refused_before_a_byte_is_written(tmp_path: Path, name: str) -> None:
    data, why = HOSTILE[name]
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "archive").write_bytes(data)
    with pytest.raises(BadArchive, match=why):
        asked(root, "archive")
    assert [path.name for path in tmp_path.rglob("*")] == ["workspace", "archive"]
    if why != "protected":  # the list has no policy of names
        assert why in list_archive(io.BytesIO(data), "archive")


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz"])
def test_an_honest_archive_is_listed_and_unpacked(tmp_path: Path, ending: str) -> None:
    content = {"docs/a.txt": b"a" * 3000, "run.sh": b"#!/bin/sh\n"}
    if ending == "zip":
        data = papers.zip_of(dict(content))
    else:
        members = ((member(name, mode=0o755 if name == "run.sh" else 0o600), text) for name, text in content.items())
        data = papers.tar_of(*members, mode="w:" + ending.partition(".")[2] if "." in ending else "w")
    (tmp_path / f"x.{ending}").write_bytes(data)
    listed = list_archive(io.BytesIO(data), f"x.{ending}")
    assert listed.splitlines()[0] == f"[archive: 2 entries, {len(data):,} bytes packed, 3,010 unpacked]"
    assert listed.splitlines()[1] == "       3,000 docs/a.txt"
    assert list(asked(tmp_path, f"x.{ending}", dry_run=True)) == ["out/docs/a.txt", "out/run.sh"]
    assert not (tmp_path / "out").exists()
    asked(tmp_path, f"x.{ending}")
    assert {name: (tmp_path / "out" / name).read_bytes() for name in content} == content
    if ending != "zip":
        assert os.access(tmp_path / "out/run.sh", os.X_OK)
    with pytest.raises(BadArchive, match="not empty"):
        asked(tmp_path, f"x.{ending}")


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_one_compressed_file_is_an_archive_of_one(tmp_path: Path, packed) -> None:
    (tmp_path / "notes.txt.z").write_bytes(packed(b"words\n" * 100))
    asked(tmp_path, "notes.txt.z")
    assert (tmp_path / "out/notes.txt").read_bytes() == b"words\n" * 100


def test_d8_a_bomb_is_refused_by_what_it_says_of_itself() -> None:
    """42.zip: archives in archives stay packed, and what says petabytes is refused."""
    inner = papers.zip_of({"zeros": bytes(20_000_000)})
    listed = list_archive(io.BytesIO(papers.zip_of({f"lib {n}.zip": inner for n in range(16)})), "42.zip")
    assert "16 of them are archives themselves" in listed
    judgement = judge(io.BytesIO(inner), "x.zip")
    assert "grows more than" in judgement.fault


def test_d8_a_bomb_that_lies_is_stopped_by_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 5_000_000)
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(bytes(20_000_000)))
    with pytest.raises(BadArchive, match="more than 5,000,000 bytes"):
        asked(tmp_path, "x.tar.gz")
    data = bytearray(papers.zip_of({"small": bytes(100_000)}))
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = (10).to_bytes(4, "little")  # the list says 10 bytes
    (tmp_path / "y.zip").write_bytes(data)
    with pytest.raises((BadArchive, zipfile.BadZipFile)):
        asked(tmp_path, "y.zip")
    assert not any((tmp_path / "out").rglob("*"))


def test_d8_too_many_entries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_ENTRIES", 10)
    (tmp_path / "x.zip").write_bytes(papers.zip_of({f"n{number}": "" for number in range(11)}))
    with pytest.raises(BadArchive, match="more than 10 entries"):
        asked(tmp_path, "x.zip")


def test_what_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    data = bytearray(papers.zip_of({"first": b"1" * 50, "second": os.urandom(500)}))
    at = data.index(b"second") + 100
    data[at] ^= 0xFF  # its checksum is wrong
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(zipfile.BadZipFile):
        asked(tmp_path, "x.zip")
    assert not any(path.is_file() for path in (tmp_path / "out").rglob("*"))


@pytest.mark.parametrize("into", ["../out", "/tmp/out", "link", ".git/hooks"])
def test_an_archive_goes_nowhere_else(tmp_path: Path, into: str) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    (root / "x.zip").write_bytes(papers.zip_of({"evil": "x"}))
    with pytest.raises((FileError, BadArchive)):
        asked(root, "x.zip", into)
    assert not list(tmp_path.rglob("evil"))
