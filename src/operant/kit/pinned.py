"""Hold on to what programs obey in a directory, so that it can be kept as it is, whoever moves names about."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from operant.kit.sandbox import Kept

OBEYED = (
    *(".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes", ".husky", ".env", ".envrc"),
    *(".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv", ".gitconfig", ".npmrc", ".pypirc"),
    *(".netrc", ".mcp.json", ".vscode", ".idea", ".claude", ".ssh", ".config/systemd", ".config/autostart"),
    *("operant.yaml", "AGENT.md"),
)
"""Programs that a person runs here obey these, or keys are in them."""


@contextmanager
def pinned(directory: str) -> Generator[tuple[Kept, ...]]:
    """Yield what there is of `OBEYED`, opened; links are nothing, as they would lead out.

    `.git` itself is among them, writable: what is bound cannot be moved aside with all that is in it.
    """
    with ExitStack() as stack:
        try:
            top = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            yield ()
            return
        stack.callback(os.close, top)
        found: list[Kept] = []
        for part, obeyed in _parts():
            handle = _opened(top, part)
            if handle >= 0:
                stack.callback(os.close, handle)
                found.append(Kept(handle, f"{directory}/{part}", writable=not obeyed))
        yield tuple(found)


def _parts() -> list[tuple[str, bool]]:
    """Return what is looked for, what is further up first: the directories on the way, and the names themselves."""
    ways = {name.rpartition("/")[0] for name in OBEYED} - {""}
    return [(way, False) for way in sorted(ways) if way not in OBEYED] + [(name, True) for name in OBEYED]


def _opened(top: int, path: str) -> int:
    """Open a path below a directory without following any link; -1 when there is none."""
    here = os.dup(top)
    for name in path.split("/"):
        try:
            below = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        except OSError:
            return -1
        finally:
            os.close(here)
        here = below
    if stat.S_ISDIR(mode := os.fstat(here).st_mode) or stat.S_ISREG(mode):
        return here
    os.close(here)
    return -1
