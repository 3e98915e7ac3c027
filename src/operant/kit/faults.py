"""Kill this process at a named point, so that tests can see what a crash there leaves behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def no_faults(point: str) -> None:
    """Go on."""


def read_faults(setting: str) -> Callable[[str], None]:
    """Return the function for a setting `point:n`: it kills this process when `point` is passed the n-th time.

    An empty setting never kills. Raises `ValueError` for a setting that is not of that form.
    """
    if not setting:
        return no_faults
    wanted, colon, count = setting.rpartition(":")
    if not colon:
        wanted, count = setting, "1"
    left = int(count)
    if left < 1:
        raise ValueError(f"{setting}: the count begins at 1")

    def fault(point: str) -> None:
        nonlocal left
        if point != wanted:
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault
