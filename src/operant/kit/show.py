"""Open an address in the person's own browser."""

from __future__ import annotations

import os
import sys


def has_screen() -> bool:
    """Tell whether there is a screen to show anything on."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def show(address: str) -> bool:
    """Open an address; tell whether somebody could see it. Blocks for as long as the browser takes to be asked."""
    if not has_screen():
        return False
    import webbrowser

    return webbrowser.open(address)
