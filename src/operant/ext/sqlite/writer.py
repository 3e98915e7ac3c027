"""The one writer: a thread that takes all writes that wait and carries them out as one group.

While the loop waits for one group's fsync, the next group gathers; the busier the system, the larger the groups.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import apsw

from operant.ext.sqlite.breath import Breath
from operant.ext.sqlite.ledger import Erased, Ledger, Work
from operant.ext.sqlite.trouble import explained
from operant.sdk import OperantError, StoreStopped

PROBE_S = 1.0
"""How often it is tried whether a store that stopped works again."""
IDLE_S = 0.25
_GROUP = 500
_BUSY_PAGES = 8_000
_IDLE_PAGES = 500
"""How large the log grows before it is brought home: 32 MB under load, 2 MB when there is a moment of rest."""

_log = logging.getLogger("operant.store")


class _Write(NamedTuple):
    work: Work
    future: asyncio.Future[None] | None


class _Halt(NamedTuple):
    """Stop until there is room for so many bytes."""

    why: StoreStopped
    room: int


class _Close(NamedTuple):
    future: asyncio.Future[None]


_Outcome = tuple[asyncio.Future[None], OperantError | None]


class Notices(NamedTuple):
    """Whom the writer's thread tells what."""

    erased: Callable[[Erased], None]
    rested: Callable[[], None]
    readable: Callable[[], None]
    """Raises what keeps readers from reading."""


class Writer:
    """Carry out writes in the order of their calls. Made and used in the event loop; `enqueue` is for any thread."""

    def __init__(self, ledger: Ledger, directory: str, breath: Breath, notices: Notices) -> None:
        self.stopped: StoreStopped | None = None
        self._ledger = ledger
        self._directory = directory
        self._notices = notices
        self._breath = breath
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Write | _Halt | _Close] = queue.SimpleQueue()
        self._recoveries: list[asyncio.Future[None]] = []
        self._halted: StoreStopped | None = None  # the thread's view of `stopped`
        self._room = 0
        self._rested = True
        self._thread = threading.Thread(target=self._work, name="operant-store", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ in the event loop

    def submit(self, work: Work) -> asyncio.Future[None]:
        """Start a write."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self.stopped is not None:
            future.set_exception(StoreStopped(self.stopped.sentence, self.stopped.hint))
            return future
        self._breath.began()
        self._queue.put(_Write(work, future))
        return future

    def halt(self, why: StoreStopped, room: int = 0) -> None:
        """Stop for a reason found elsewhere, until a write goes well and so many bytes are free."""
        if self.stopped is None:
            self._stops(why, [])
            self._queue.put(_Halt(why, room))

    async def recovered(self) -> None:
        """Return when writes are accepted again after they were not."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._recoveries.append(future)
        try:
            await future
        finally:
            if future in self._recoveries:
                self._recoveries.remove(future)

    async def close(self) -> None:
        """Carry out what waits, then close the database."""
        if not self._thread.is_alive():
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put(_Close(future))
        await future
        self._thread.join()
        self._ended()

    def _ended(self) -> None:
        """Refuse what comes after the end of the thread, and what was on its way to it."""
        self.stopped = self.stopped or StoreStopped("The store is closed.", "Start Operant again.")
        while (item := self._next(0)) is not None:
            if isinstance(item, _Write):
                self._settle(_refused([item], self.stopped))

    def _settle(self, outcomes: Sequence[_Outcome]) -> None:
        self._breath.ended(len(outcomes))
        _resolve(outcomes)

    def _stops(self, why: StoreStopped, outcomes: Sequence[_Outcome]) -> None:
        if self.stopped is None:
            _log.error("the store accepts nothing: %s", why.line())
        self.stopped = why
        self._settle(outcomes)

    def _goes_on(self) -> None:
        _log.info("the store accepts again")
        self.stopped = None
        recoveries, self._recoveries = self._recoveries, []
        _resolve([(future, None) for future in recoveries])

    # ------------------------------------------------------------------ in any thread

    def enqueue(self, work: Work) -> None:
        """Have statements of our own carried out some time, or never when the store has stopped by then."""
        self._queue.put(_Write(work, None))

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            _log.debug("nobody waits any more: the event loop is closed")

    # ------------------------------------------------------------------ in the writer's thread

    def _work(self) -> None:
        try:
            while self._round():
                continue
        finally:
            self._tell(self._ended)  # by `close`, or by a fault of ours: nobody may wait for ever

    def _round(self) -> bool:
        """Take what waits and carry it out; False when that was the end."""
        if self._halted is not None:
            return self._halted_round()
        first = self._next(None if self._rested else IDLE_S)
        if first is None:
            self._rest()
            return True
        group = [first]
        while len(group) < _GROUP and not self._queue.empty():
            group.append(self._queue.get())
        self._rested = False
        return self._handle(group)

    def _handle(self, group: Sequence[_Write | _Halt | _Close]) -> bool:
        """Carry out the writes up to what is not one, then that."""
        writes: list[_Write] = []
        for at, item in enumerate(group):
            if isinstance(item, _Write):
                writes.append(item)
                continue
            self._carry_out(writes)
            if isinstance(item, _Close):
                self._leave(item.future)
                return False
            self._halted, self._room = item.why, item.room
            return self._handle(group[at + 1 :])
        self._carry_out(writes)
        return True

    def _carry_out(self, writes: list[_Write]) -> None:
        if not writes:
            return
        if self._halted is not None:
            self._refuse(writes, self._halted)
            return
        try:
            outcomes, erased = self._ledger.carry_out([write.work for write in writes])
        except (apsw.Error, StoreStopped, OSError) as error:
            self._halt(error, writes)
            return
        pairs = zip(writes, outcomes, strict=True)
        self._tell(self._settle, [(write.future, error) for write, error in pairs if write.future is not None])
        self._afterwards(erased)

    def _afterwards(self, erased: Erased) -> None:
        """Do what nobody waits for."""
        if erased.referred or erased.erases:
            try:
                self._notices.erased(erased)
            except (apsw.Error, OperantError, OSError) as error:
                _log.warning("blobs of an erased session are left for the next sweep: %s", error)
        try:
            if erased.erases:
                self._ledger.wipe_log()
            elif self._ledger.pages >= _BUSY_PAGES:
                self._ledger.checkpoint()
        except apsw.Error as error:
            self._halt(error, [])

    def _rest(self) -> None:
        self._rested = True
        self._notices.rested()
        if self._ledger.pages >= _IDLE_PAGES:
            try:
                self._ledger.checkpoint()
            except apsw.Error as error:
                self._halt(error, [])

    # ------------------------------------------------------------------ stopping and going on

    def _halt(self, error: apsw.Error | StoreStopped | OSError, writes: list[_Write]) -> None:
        why = self._reason(error)
        self._halted = why
        self._tell(self._stops, why, _refused(writes, why))

    def _refuse(self, writes: list[_Write], why: StoreStopped) -> None:
        self._tell(self._settle, _refused(writes, why))

    def _reason(self, error: apsw.Error | StoreStopped | OSError) -> StoreStopped:
        if isinstance(error, StoreStopped):
            return error
        if isinstance(error, OSError):
            return StoreStopped(f"The disk reports an error: {error.strerror}.", "Operant goes on when it works again.")
        return explained(error, self._ledger.suffered(error))

    def _halted_round(self) -> bool:
        until = time.monotonic() + PROBE_S
        while (left := until - time.monotonic()) > 0:
            item = self._next(left)
            if isinstance(item, _Close):
                self._leave(item.future)
                return False
            if isinstance(item, _Write) and self._halted is not None:
                self._refuse([item], self._halted)
        self._probe()
        return True

    def _probe(self) -> None:
        try:
            if self._room and shutil.disk_usage(self._directory).free < self._room:
                return
            self._ledger.probe()
            self._notices.readable()
        except (apsw.Error, OperantError, OSError) as error:
            if isinstance(error, apsw.Error):
                self._ledger.suffered(error)
            _log.debug("the store does not work yet: %s", error)
            return
        self._halted, self._room = None, 0
        self._tell(self._goes_on)

    def _next(self, timeout: float | None) -> _Write | _Halt | _Close | None:
        try:
            return self._queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def _leave(self, future: asyncio.Future[None]) -> None:
        self._ledger.close(clean=self._halted is None)
        self._tell(_resolve, [(future, None)])


def _resolve(outcomes: Sequence[_Outcome]) -> None:
    for future, error in outcomes:
        if future.done():
            continue  # nobody waits any more
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def _refused(writes: Sequence[_Write], why: StoreStopped) -> list[_Outcome]:
    return [(one.future, StoreStopped(why.sentence, why.hint)) for one in writes if one.future is not None]
