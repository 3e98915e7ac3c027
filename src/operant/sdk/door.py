"""The syscalls of a kernel: whoever builds one opens this door on it."""

from __future__ import annotations

from operant.kernel.kernel import Kernel
from operant.sdk.session_calls import SessionCalls
from operant.sdk.system_calls import SystemCalls


def open_door(kernel: Kernel) -> None:
    """Let the kernel's own syscalls be called."""
    SessionCalls(kernel).register()
    SystemCalls(kernel).register()
