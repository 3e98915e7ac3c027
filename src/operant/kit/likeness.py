"""Make the `/etc` that sandboxes see: of the machine's what programs need and everybody may read, and names of our own.

It is a copy because one directory is bound in a tenth of the time that forty files take, and that is paid for every
command. Its name is made of what it was copied from, so that a change there makes another.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from operant.kit.sandbox import HOME, UID

CHOSEN = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version"),
    *("fonts", "gai.conf", "host.conf", "inputrc", "java-*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("locale.alias", "localtime", "magic", "magic.mime", "mime.types", "os-release", "perl", "pki/ca-trust"),
    *("pki/tls/certs", "profile", "protocols", "python3*", "services", "shells", "ssl/certs", "ssl/cert.pem"),
    *("ssl/openssl.cnf", "terminfo", "timezone", "vim", "xdg", "xml"),
)
OWN = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\nagent:x:{UID}:{UID}:agent:{HOME}:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": f"root:x:0:\nagent:x:{UID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n",
    "resolv.conf": "# no names are resolved here: the proxy does it, if there is one\n",
}
"""Files that say who one is: ours, because the machine's name its people and its neighbours."""

_MOST_BYTES = 4_000_000


def likeness(place: Path, source: Path = Path("/etc")) -> Path:
    """Return the copy below `place` that is right now, made if it is not there; older ones are removed.

    Called while no sandbox runs that could use an older one. Raises `OSError`.
    """
    chosen = sorted({path for pattern in CHOSEN for path in source.glob(pattern)})
    made = place / f"etc-{_fingerprint(chosen)}"
    old = [path for path in place.glob("etc-*") if path != made]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    if made.is_dir():
        return made
    unfinished = place / f"etc-{os.getpid()}.new"
    for path in chosen:
        _copy(path, unfinished / path.relative_to(source))
    for name, text in OWN.items():
        (unfinished / name).write_text(text)
    for path in (unfinished, *(path for path in unfinished.rglob("*") if path.is_dir() and not path.is_symlink())):
        path.chmod(0o755)
    unfinished.rename(made)
    return made


def _fingerprint(chosen: list[Path]) -> str:
    told = hashlib.sha256(repr((CHOSEN, OWN)).encode())
    for path in chosen:
        told.update(f"{path}:{path.lstat().st_mtime_ns}\n".encode())
        told.update("".join(f"{one}:{one.lstat().st_mtime_ns}\n" for one in _entries(path)).encode())
    return told.hexdigest()[:16]


def _entries(path: Path) -> Iterator[Path]:
    if path.is_dir() and not path.is_symlink():
        yield from sorted(path.iterdir())


def _copy(source: Path, target: Path) -> None:
    """Copy what everybody may read; links stay links, since they mean the same inside."""
    mode = source.lstat().st_mode
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISDIR(mode) and mode & stat.S_IROTH:
        target.mkdir(exist_ok=True)
        for path in _entries(source):
            _copy(path, target / path.name)
    elif stat.S_ISREG(mode) and mode & stat.S_IROTH and source.stat().st_size <= _MOST_BYTES:
        shutil.copyfile(source, target)
        target.chmod(0o644)
