"""The two durable queues: what came in and waits for its session, and what must go out and waits for its platform."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

from operant.kernel.crew import Crew
from operant.kernel.errors import Conflict, Invalid, OperantError, Refused, Unavailable, Uncertain
from operant.kernel.log import Log, Stamp
from operant.kernel.ports import Accept, Channel, Clock, Decline, Faults, Hand, Ids, Postpone, Receipt, Store
from operant.kernel.records import Address, InboxItem, MessageDelivered, MessageFailed, MessageQueued, OutboxItem

BACKOFF_S = 1.0
BACKOFF_MAX_S = 300.0
ATTEMPTS = 20
LOCAL = "local"
"""The channel of programs and terminals that follow the history themselves."""

_log = logging.getLogger("operant.mailbox")


class Inbox:
    """Accepted messages by session; memory mirrors the store, which has them first."""

    def __init__(self, store: Store, faults: Faults) -> None:
        self._store = store
        self._faults = faults
        self._waiting: dict[str, deque[InboxItem]] = {}

    async def accept(self, item: InboxItem) -> tuple[InboxItem, bool]:
        """Take a message in durably; the flag says that it had been taken in before."""
        self._faults("received")
        try:
            await self._store.write(Accept(item=item))
        except Conflict:
            address = item.address
            known = await self._store.accepted(address.channel, address.account, item.external_id)
            if known is None:
                raise
            return known, True
        self._waiting.setdefault(item.session, deque()).append(item)
        self._faults("accepted")
        return item, False

    async def reload(self, session: str) -> None:
        """Read a session's waiting messages again."""
        self._waiting[session] = deque(await self._store.inbox(session))

    def take(self, session: str) -> InboxItem | None:
        """Return the next message of a session; it is settled when the history has it."""
        waiting = self._waiting.get(session)
        if not waiting:
            self._waiting.pop(session, None)
            return None
        return waiting.popleft()

    def waits(self, session: str) -> bool:
        """Tell whether a session has messages to handle."""
        return bool(self._waiting.get(session))

    async def decline(self, item: InboxItem, reason: str) -> None:
        """Settle a message that no session can handle."""
        await self._store.write(Decline(inbox_id=item.id, reason=reason))


class Outbox:
    """Hand messages to their channels: in order per address, addresses side by side."""

    def __init__(self, log: Log, clock: Clock, ids: Ids, faults: Faults) -> None:
        self._log = log
        self._clock = clock
        self._ids = ids
        self._faults = faults
        self._channels: dict[str, Channel] = {}
        self._queues: dict[Address, deque[OutboxItem]] = {}
        self._held: set[str] = set()
        self._crew = Crew()

    async def __aenter__(self) -> Outbox:
        await self._crew.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        await self._crew.__aexit__(*reason)

    async def recover(self) -> None:
        """Take up what the store still has to deliver."""
        for item in await self._log.store.outbox():
            self.post(item)

    def register(self, channel: Channel) -> None:
        """Add a channel. Raises `Conflict` when its name is taken."""
        if channel.name in self._channels:
            raise Conflict(f"There is already a channel {channel.name}.")
        self._channels[channel.name] = channel

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Return all channels."""
        return tuple(self._channels.values())

    def pulls(self, address: Address) -> bool:
        """Tell whether queueing for an address is delivering, because its reader follows the history."""
        channel = self._channels.get(address.channel)
        return address.channel == LOCAL or (channel is not None and channel.pull)

    def queued(self, session: str, body: MessageQueued, at: int) -> None:
        """Take over a message that the history has just got."""
        if not self.pulls(body.address):
            item = OutboxItem(
                id=body.outbox_id,
                session=session,
                parts=body.parts,
                address=body.address,
                queued=at,
                reply_to=body.reply_to,
                expires=body.expires,
            )
            self.post(item)

    def post(self, item: OutboxItem) -> None:
        """Put a message into its address's queue."""
        if not self._crew.working:
            return  # it is in the store, and read from there at the next start
        if item.id in self._held:
            return
        self._held.add(item.id)
        queue = self._queues.get(item.address)
        if queue is not None:
            queue.append(item)
            return
        self._queues[item.address] = deque([item])
        self._crew.spawn(self._work(item.address))

    def notice(self, address: Address, text: str) -> None:
        """Show something that is not kept; waits for nobody."""
        channel = self._channels.get(address.channel)
        if channel is not None:
            self._crew.spawn(self._notice(channel, address, text))

    async def _notice(self, channel: Channel, address: Address, text: str) -> None:
        try:
            await channel.notice(address, text)
        except OperantError as error:
            _log.info("notice to %s failed: %s", address.channel, error.sentence)

    async def _work(self, address: Address) -> None:
        queue = self._queues[address]
        try:
            while queue:
                await self._deliver(queue[0])
                self._held.discard(queue.popleft().id)
        except OperantError as error:
            _log.warning("delivery to %s waits: %s", address.channel, error.sentence)
        finally:
            self._held.difference_update(item.id for item in queue)
            del self._queues[address]

    async def _deliver(self, item: OutboxItem) -> None:
        """Try until the platform has it, refuses it, or it has expired."""
        uncertain = item.state == "handed"
        attempts = item.attempts
        while True:
            wait = item.next_at - self._clock.now()
            if wait > 0 and attempts == item.attempts:
                await self._clock.sleep(wait / 1_000_000)
            if item.expires and self._clock.now() > item.expires:
                return await self._settle(item, attempts, error="It expired before it could be delivered.")
            attempts += 1
            try:
                return await self._attempt(item, attempts, uncertain)
            except (Invalid, Refused) as error:
                return await self._settle(item, attempts, error=error.line())
            except Unavailable as error:
                uncertain = uncertain or isinstance(error, Uncertain)
                if attempts >= ATTEMPTS:
                    return await self._settle(item, attempts, error=error.line())
                await self._postpone(item, attempts, error)

    async def _attempt(self, item: OutboxItem, attempts: int, uncertain: bool) -> None:
        channel = self._channels.get(item.address.channel)
        if channel is None:
            raise Unavailable(f"There is no channel {item.address.channel!r}.", "Enable it, or drop the message.")
        repeat = False
        if uncertain and not channel.exact:
            try:
                known = await channel.find(item)
            except Unavailable:
                known, repeat = None, True
            if known is not None:
                await self._settle(item, attempts, receipt=known)
                return
        if not channel.exact:
            await self._log.store.write(Hand(outbox_id=item.id, attempts=attempts))
        self._faults("sending")
        receipt = await channel.send(item, repeat=repeat)
        self._faults("sent")
        await self._settle(item, attempts, receipt=receipt, repeat=repeat)

    async def _postpone(self, item: OutboxItem, attempts: int, error: Unavailable) -> None:
        pause = min(BACKOFF_S * 2 ** (attempts - 1), BACKOFF_MAX_S) * (0.5 + self._ids.jitter() / 2)
        next_at = self._clock.now() + int(pause * 1_000_000)
        if not isinstance(error, Uncertain):
            operation = Postpone(outbox_id=item.id, next_at=next_at, attempts=attempts, error=error.line())
            await self._log.store.write(operation)
        await self._clock.sleep(pause)

    async def _settle(
        self, item: OutboxItem, attempts: int, *, receipt: Receipt | None = None, error: str = "", repeat: bool = False
    ) -> None:
        body = (
            MessageFailed(outbox_id=item.id, error=error, attempts=attempts)
            if receipt is None
            else MessageDelivered(outbox_id=item.id, platform_id=receipt.platform_id, attempts=attempts, repeat=repeat)
        )
        history = self._log.history(item.session)
        await history.append(Stamp(actor=f"channel:{item.address.channel}"), body)
