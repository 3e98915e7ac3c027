"""The letters of a home: values in the store, by id, and those whose senders are still to hear of them."""

from __future__ import annotations

import msgspec

from operant.ext.a2a.letter import Letter
from operant.sdk import Host, PutValue

NAMESPACE = "a2a"
KEPT_US = 30 * 86_400_000_000
_LETTER = "letter:"
_OWED = "owed:"


class Letters:
    """Read and write letters; nothing is kept in memory."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def put(self, letter: Letter, *, owed: bool) -> None:
        """Write a letter down, and whether its sender is still to hear of it."""
        expires = self._host.clock.now() + KEPT_US
        text = msgspec.json.encode(letter)
        await self._host.kept.write(
            PutValue(namespace=NAMESPACE, key=_LETTER + letter.id, value=text, expires=expires),
            PutValue(namespace=NAMESPACE, key=_OWED + letter.id, value=b"1" if owed else None, expires=expires),
        )

    async def drop(self, letter: Letter) -> None:
        """Forget a letter that was never sent."""
        await self._host.kept.write(
            PutValue(namespace=NAMESPACE, key=_LETTER + letter.id, value=None),
            PutValue(namespace=NAMESPACE, key=_OWED + letter.id, value=None),
        )

    async def get(self, id: str) -> Letter | None:
        """Return a letter."""
        value = await self._host.kept.value(NAMESPACE, _LETTER + id)
        return msgspec.json.decode(value, type=Letter) if value is not None else None

    async def all(self) -> list[Letter]:
        """Return all letters, oldest first."""
        values = await self._host.kept.values(NAMESPACE, _LETTER)
        return sorted((msgspec.json.decode(value, type=Letter) for _, value in values), key=lambda one: one.sent)

    async def owed(self) -> list[Letter]:
        """Return the letters whose senders are still to hear of them, oldest first."""
        ids = [key.removeprefix(_OWED) for key, _ in await self._host.kept.values(NAMESPACE, _OWED)]
        found = [await self.get(id) for id in ids]
        return sorted((one for one in found if one is not None), key=lambda one: one.sent)
