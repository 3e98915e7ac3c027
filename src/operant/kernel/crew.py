"""Tasks with an owner: they end when it does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any


class Crew:
    """A task group whose tasks are cancelled, not awaited, when its owner leaves."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Crew:
        self._group = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        group, self._group = self._group, None
        for task in tuple(self._tasks):
            task.cancel()
        if group is not None:
            # The owner's own exception goes on as it is: only what tasks raise becomes a group.
            await group.__aexit__(None, None, None)

    @property
    def working(self) -> bool:
        """Tell whether tasks can be added."""
        return self._group is not None

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Run something until it ends or its owner leaves; it must not raise. None when the owner has left.

        It begins in a context of its own: a handler that set it going does not go on in it.
        """
        if self._group is None:
            work.close()
            return None
        task = self._group.create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
