"""Look at every message that says it is from an agent: what was not sealed here is refused before a model reads it."""

from __future__ import annotations

import logging
from typing import cast

import msgspec

from operant.ext.a2a.letter import CHANNEL, MARK, Piece, Seals
from operant.ext.a2a.letters import NAMESPACE, Letters
from operant.ext.a2a.post import NOTE
from operant.sdk import (
    DispatchInput,
    DispatchOutput,
    Event,
    Host,
    InboxItem,
    MessageReceived,
    Note,
    PutValue,
    Reject,
    Text,
)

_QUIET = "quiet:"
_PIECES: dict[str, Piece] = {"ask": "ask", "answer": "answer", "late": "late"}

_log = logging.getLogger("operant.a2a")


class Arrivals:
    """The handlers, and the sessions in which something was left that nobody has read yet."""

    def __init__(self, host: Host, letters: Letters, seals: Seals) -> None:
        self._host = host
        self._letters = letters
        self._seals = seals
        self._quiet: set[str] | None = None

    async def checked(self, input: DispatchInput, output: DispatchOutput) -> DispatchOutput | None:
        """Take the words out of a forged message; `refused` then refuses it, where it begins a turn."""
        if not claims(input.item) or await self._true(input.item):
            return None
        _log.warning("a forged message of %s to %s was refused", input.item.author, input.session)
        return DispatchOutput(parts=(Text(text="[A message that only claimed to be from an agent was taken out.]"),))

    async def refused(self, input: DispatchInput) -> Reject | None:
        """Refuse a forged message."""
        if not claims(input.item) or await self._true(input.item):
            return None
        return Reject(reason="This message says that it is from an agent, and no agent has sent it.")

    async def _true(self, item: InboxItem) -> bool:
        id, _, name = item.external_id.removeprefix(MARK).rpartition(":")
        piece = _PIECES.get(name)
        letter = await self._letters.get(id) if piece and item.external_id.startswith(MARK) else None
        if letter is None or piece is None:
            return False
        session, address = (letter.session, letter.address) if piece == "ask" else (letter.origin, letter.back)
        same = (item.session, item.address, item.author) == (session, address, letter.author(piece))
        return same and self._seals.holds(letter, piece, item.parts, item.labels)

    # ------------------------------------------------------------------ silent messages

    async def left(self, session: str, seq: int) -> None:
        """Remember that something was left in a session."""
        quiet = await self._sessions()
        if session not in quiet:
            await self._host.kept.write(
                PutValue(namespace=NAMESPACE, key=_QUIET + session, value=str(seq - 1).encode())
            )
            quiet.add(session)

    async def told(self, input: DispatchInput, output: DispatchOutput) -> DispatchOutput | None:
        """Let what was left go with the next message of its session."""
        if input.session not in await self._sessions():
            return None
        value = await self._host.kept.value(NAMESPACE, _QUIET + input.session) or b"0"
        notes = _unread(await self._host.kept.events(input.session, int(value)))
        if not notes:
            await self._host.kept.write(PutValue(namespace=NAMESPACE, key=_QUIET + input.session, value=None))
            (await self._sessions()).discard(input.session)
            return None
        texts, labels = [output.ambient] if output.ambient else [], set(output.labels)
        for note in notes:
            letter = await self._letters.get(str(note.data.get("id", "")))
            if letter and self._seals.holds(letter, "ask", (Text(text=note.text),), letter.labels):
                texts.append(note.text)
                labels.update(letter.labels)
        return msgspec.structs.replace(output, ambient="\n".join(texts), labels=tuple(sorted(labels)))

    async def _sessions(self) -> set[str]:
        if self._quiet is None:
            found = await self._host.kept.values(NAMESPACE, _QUIET)
            self._quiet = {key.removeprefix(_QUIET) for key, _ in found}
        return self._quiet


def claims(item: InboxItem) -> bool:
    """Tell whether a message says that it is from an agent."""
    return item.author.startswith(MARK) or item.external_id.startswith(MARK) or item.address.channel == CHANNEL


def _unread(events: object) -> list[Note]:
    """Return the silent messages since the last message that a model has read."""
    notes: list[Note] = []
    for event in cast("list[Event]", events):
        if isinstance(event.body, MessageReceived):
            notes.clear()
        elif isinstance(event.body, Note) and event.body.kind == NOTE:
            notes.append(event.body)
    return notes
