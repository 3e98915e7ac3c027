"""What all turns of a running system share."""

from __future__ import annotations

from dataclasses import dataclass

from operant.kernel.compute import Compute
from operant.kernel.gate import Gate
from operant.kernel.hooks import Hooks
from operant.kernel.log import Log
from operant.kernel.mailbox import Inbox, Outbox
from operant.kernel.ports import Clock, Faults, Ids
from operant.kernel.prefix import Prefix


@dataclass(frozen=True)
class House:
    """Everything that turns share; none of it is one turn's own."""

    hooks: Hooks
    log: Log
    gate: Gate
    compute: Compute
    prefix: Prefix
    inbox: Inbox
    outbox: Outbox
    clock: Clock
    ids: Ids
    faults: Faults
