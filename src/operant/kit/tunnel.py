"""Carry bytes between two connections, but neither for ever nor without end."""

from __future__ import annotations

import asyncio
from contextlib import suppress

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_PIECE = 65_536


class Tunnel:
    """One use: it ends when both ways have ended, after `idle_s` without a byte, or after `most` bytes.

    Raises `TimeoutError` when it was idle.
    """

    def __init__(self, idle_s: float, most: int) -> None:
        self._idle_s = idle_s
        self._left = most

    async def both(self, client: Ends, server: Ends) -> None:
        """Carry both ways until both have ended."""
        async with asyncio.timeout(self._idle_s) as deadline, asyncio.TaskGroup() as group:
            group.create_task(self._carry(client[0], server[1], deadline))
            group.create_task(self._carry(server[0], client[1], deadline))

    async def exchange(self, client: Ends, server: Ends, length: int) -> None:
        """Carry `length` bytes there, then the answer to its end; what else the client says is for no server."""
        async with asyncio.timeout(self._idle_s) as deadline, asyncio.TaskGroup() as group:
            asking = group.create_task(self._carry(client[0], server[1], deadline, length))
            await self._carry(server[0], client[1], deadline)
            asking.cancel()

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        deadline: asyncio.Timeout,
        length: int | None = None,
    ) -> None:
        # A way that breaks off has ended; the other may still have something to carry.
        with suppress(OSError):
            left = self._left if length is None else length
            while left > 0 and (piece := await reader.read(min(left, self._left, _PIECE))):
                self._left -= len(piece)
                left = self._left if length is None else left - len(piece)
                deadline.reschedule(asyncio.get_running_loop().time() + self._idle_s)
                writer.write(piece)
                await writer.drain()
            if length is None:
                writer.write_eof()
