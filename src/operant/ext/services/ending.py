"""Say in words how the process of a service ended, so that its author knows where to look."""

from __future__ import annotations

from collections.abc import Sequence

WRONG_CONFIGURATION = 78
"""The exit code by which a service says that trying again is of no use."""
_NOT_ALLOWED, _NOT_FOUND = 126, 127
_SIGNALS = range(129, 193)
"""A shell or a sandbox around a process adds 128 to the number of the signal that ended it."""
_BAD_OPTION = 9
_STRIPS = "--experimental-strip-types"


def told(code: int, argv: Sequence[str]) -> str:
    """Return what the exit code of a command means."""
    words = {
        WRONG_CONFIGURATION: "it says that its configuration is wrong (exit code 78)",
        _NOT_ALLOWED: "its program may not be run (code 126); `chmod +x`?",
        _NOT_FOUND: f"the program {argv[0] if argv else ''} was not found (code 127)",
        0: "its process ended by itself (code 0), and a service has to stay",
    }
    if code in words:
        return words[code]
    if code < 0 or code in _SIGNALS:
        return f"its process was ended by signal {-code if code < 0 else code - 128}"
    if code == _BAD_OPTION and _STRIPS in argv:
        return "this Node cannot run TypeScript; 22.6 or newer can"
    return f"its process ended with code {code}; its log says why"
