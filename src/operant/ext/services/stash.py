"""Copies of skills by their content: what was allowed is what runs, whatever becomes of the folder meanwhile."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from operant.ext.services.contents import digest_of, files_of
from operant.sdk import Invalid

_READY = ".ready"


class Stash:
    """The copies of one service, each below its digest; `data` is what the service itself keeps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.data = folder / "data"

    def has(self, digest: str) -> bool:
        """Tell whether there is a copy."""
        return bool(digest) and self.place(digest).is_dir()

    def place(self, digest: str) -> Path:
        """Return where the copy of a content is, or would be."""
        return self._folder / digest[:16]

    def is_ready(self, digest: str) -> bool:
        """Tell whether a copy was set up."""
        return (self._folder / f"{digest[:16]}{_READY}").exists()

    def set_ready(self, digest: str) -> None:
        """Note that a copy was set up."""
        (self._folder / f"{digest[:16]}{_READY}").touch(mode=0o600)

    def keep(self, source: Path, digest: str, declared: bytes = b"") -> Path:
        """Copy a folder that has this content, unless that is there. Raises `Invalid` when it has another by now."""
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self.place(digest)
        if place.is_dir():
            return place
        with tempfile.TemporaryDirectory(prefix=f".{digest[:16]}.", dir=self._folder) as aside:
            fresh = Path(aside) / "copy"
            for path, _ in files_of(source):
                target = fresh / path.relative_to(source)
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copy(path, target)
            if digest_of(fresh, declared) != digest:
                raise Invalid(f"{source} changed while it was copied.")
            if not place.is_dir():
                fresh.rename(place)
        return place

    def thin(self, kept: set[str]) -> None:
        """Forget the copies that nobody needs."""
        names = {digest[:16] for digest in kept} | {self.data.name}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name.startswith(".") or path.name.removesuffix(_READY) in names:
                continue  # one that begins with a dot is being made
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
