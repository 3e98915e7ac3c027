"""A restart that somebody asks for from within: the process ends, and says by its code that it wants to come back."""

from __future__ import annotations

from collections.abc import Mapping

from operant.kernel.errors import Refused
from operant.kernel.kernel import Kernel
from operant.kernel.records import Principal
from operant.kernel.syscalls import KernelRestart

SUPERVISED = "OPERANT_SUPERVISED"
"""Set by who starts a system again when it ends with code 75."""


class Renewal:
    """Whether this system is to be started again when it has stopped."""

    def __init__(self, kernel: Kernel, env: Mapping[str, str], *, stays: bool) -> None:
        self.wanted = False
        self._kernel = kernel
        self.supervised = stays and is_supervised(env)
        kernel.syscalls.register(KernelRestart, self.restart)

    async def restart(self, who: Principal, call: KernelRestart) -> None:
        """Stop, to be started again."""
        if not self.supervised:
            raise Refused(
                "Nothing would start Operant again.",
                "Run it as `operant serve --supervised` or as a service (`operant service install`).",
            )
        if not call.dry:
            self.wanted = True
            self._kernel.stopping.set()


def is_supervised(env: Mapping[str, str]) -> bool:
    """Tell whether somebody starts us again: our own supervisor, or a service of ours at systemd or launchd."""
    launched = "operant" in env.get("XPC_SERVICE_NAME", "")  # every program of a Mac's terminal has one
    return bool(env.get(SUPERVISED) or env.get("NOTIFY_SOCKET")) or launched
