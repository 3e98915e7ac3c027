"""What this machine has to make a sandbox of, found by trying it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Literal, NamedTuple

from operant.kit import proc, sandbox
from operant.kit.sandbox import Bubblewrap
from operant.kit.seccomp import FAMILIES, seccomp_filter

_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C"}
_TRIAL_S = 10.0
REMEDY = "Install bubblewrap (the package is called that), or set `sandbox: false` for this agent if you mean it."


class Means(NamedTuple):
    """What makes sandboxes: `why` says what is wrong with the better ones, `remedy` what would help."""

    kind: Literal["bubblewrap", "landlock", "none"]
    why: str = ""
    remedy: str = ""
    bubblewrap: Bubblewrap | None = None


async def find_means(by: Sequence[str]) -> Means:
    """Return the first of `by` that works here."""
    why: list[Means] = []
    if "bubblewrap" in by:
        found = await _bubblewrap()
        if found.kind == "bubblewrap":
            return found
        why.append(found)
    if "landlock" in by:
        from operant.kit import landlock  # ctypes takes 3 ms, and is seldom needed

        version = landlock.version()
        if version >= landlock.LEAST and seccomp_filter(os.uname().machine, FAMILIES):
            above = why[0] if why else Means("none", "It was chosen (`sandbox.by`).")
            return Means("landlock", f"{above.why} With Landlock {landlock.lacking(version)}.", above.remedy)
        why.append(Means("none", f"Landlock is version {version} of {landlock.LEAST}.", REMEDY))
    if not why:
        return Means("none", "No kind of sandbox is switched on.", "Name one in `sandbox.by`.")
    return Means("none", " ".join(one.why for one in why), why[0].remedy)


async def _bubblewrap() -> Means:
    if sys.platform != "linux":
        return Means("none", f"There is no bubblewrap on {sys.platform}.", REMEDY)
    path = sandbox.find_bubblewrap()
    if not path:
        return Means("none", "Bubblewrap is not installed.", REMEDY)
    code, text = await _said([path, "--help"])
    if code != 0:
        return Means("none", f"{path} does not run: {text}", REMEDY)
    made = Bubblewrap.read(path, text, os.uname().release)
    code, text = await _said(sandbox.wrapped(made, sandbox.Policy(), ["/bin/sh", "-c", "echo works"]))
    if code != 0 or text != "works":
        return Means("none", f"Bubblewrap cannot make namespaces here ({text[:200]}).", _namespaces_remedy())
    return Means("bubblewrap", bubblewrap=made)


def _namespaces_remedy() -> str:
    return (
        "Let programs make user namespaces: `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or "
        "`kernel.unprivileged_userns_clone=1`, in a container `--security-opt seccomp=unconfined`; "
        "or set `sandbox: false` for this agent if you mean it."
    )


async def _said(argv: list[str]) -> tuple[int | None, str]:
    try:
        done = await proc.launch(proc.Plain(argv, "/", _ENV, contained=True), timeout_s=_TRIAL_S)
    except proc.CannotStart as error:
        return None, str(error)
    done.output.close()
    return done.code, done.output.head.strip()
