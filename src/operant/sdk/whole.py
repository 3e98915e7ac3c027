"""Refuse calls with texts that no store and no wire can take, before anything of them is done."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from operant.kernel.errors import Invalid
from operant.kernel.syscalls import Syscall
from operant.kit.text import HALVED

T = TypeVar("T")


def whole(given: T) -> T:
    """Return a call, or parts of one, when all of its texts can be written. Raises `Invalid`."""
    if _halved(given):
        what = given.call if isinstance(given, Syscall) else "This"
        raise Invalid(f"{what} cannot be done: {HALVED[0].lower()}{HALVED[1:]}", "Give it as UTF-8.")
    return given


def _halved(given: object) -> bool:
    """Try in MessagePack, in which bytes do not grow: 0.2 µs for the message of a person."""
    try:
        msgspec.msgpack.encode(given)
    except UnicodeEncodeError:
        return True
    except (TypeError, OverflowError, RecursionError):  # JSON has more; what has not is refused where it is used
        return False
    return False
