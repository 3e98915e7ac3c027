"""Readers: threads with connections that cannot write, so that a long read holds nobody up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import apsw

from operant.ext.sqlite.breath import Breath
from operant.ext.sqlite.connection import Place, connect_reader
from operant.ext.sqlite.trouble import CHECK, DAMAGE, explained
from operant.kit.sqlite import Database, Execute
from operant.sdk import Damaged, StoreStopped

T = TypeVar("T")

_READERS = 2
_PATIENCE_S = 10.0


class Readers:
    """Run reads in threads, and lend connections to them."""

    def __init__(self, place: Place, breath: Breath, on_stop: Callable[[StoreStopped], None]) -> None:
        self._place = place
        self._breath = breath
        self._on_stop = on_stop
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="operant-read")
        self._idle: list[Database] = []
        self._busy = 0
        self._parted = False
        self._changed = threading.Condition()

    async def run(self, read: Callable[[Execute], T]) -> T:
        """Return what a read finds. Raises `Damaged` or `StoreStopped`."""
        try:
            return await self.blocking(lambda: self.read(read))
        except apsw.Error as error:
            stopped = explained(error)
            self._on_stop(stopped)
            raise stopped from error

    async def blocking(self, work: Callable[[], T]) -> T:
        """Run work that is not SQL in a thread."""
        self._breath.began()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._breath.ended()

    def read(self, read: Callable[[Execute], T]) -> T:
        """Read in this thread. Raises `Damaged`, or what SQLite raises."""
        connection = self._borrow()
        try:
            return read(connection.execute)
        except DAMAGE as error:
            raise Damaged("A page of the database is damaged.", CHECK) from error
        finally:
            self._give_back(connection)

    def try_fresh(self) -> None:
        """Find out whether a connection can be opened and read. Raises what stands in the way."""
        connection = connect_reader(self._place)
        try:
            connection.execute("SELECT count(*) FROM meta").fetchall()
        finally:
            connection.close()

    @contextmanager
    def parted(self) -> Generator[None]:
        """Keep every connection closed inside: a file that they hold has been replaced."""
        with self._changed:
            self._parted = True
            self._changed.wait_for(lambda: not self._busy, _PATIENCE_S)
            self._close_idle()
        try:
            yield
        finally:
            with self._changed:
                self._parted = False
                self._changed.notify_all()

    def close(self) -> None:
        """Wait for what runs, and close."""
        self._pool.shutdown()
        with self._changed:
            self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _borrow(self) -> Database:
        with self._changed:
            self._changed.wait_for(lambda: not self._parted)
            self._busy += 1
            if self._idle:
                return self._idle.pop()
        try:
            return connect_reader(self._place)
        except BaseException:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()
            raise

    def _give_back(self, connection: Database) -> None:
        with self._changed:
            self._busy -= 1
            self._idle.append(connection)
            self._changed.notify_all()
