"""What a model is sent: a projection of the history, grown event by event.

A pure function of the events: rebuilt from nothing it is the same as when it grew. Every decision that shortens it is
an event itself (`context.compacted`), so that settings never change what an old request looked like.
"""

from __future__ import annotations

from operant.kernel.records import (
    BlobRef,
    ContextCompacted,
    ContextOpened,
    Event,
    Message,
    MessageReceived,
    ModelReplied,
    Part,
    Record,
    Text,
    ToolCall,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)

_CHARS_A_TOKEN = 4
_TOKENS_A_MESSAGE = 4
_TOKENS_A_BLOB = 1_000
_NO_RESULT = "(no result is on record for this call)"


def estimate(parts: tuple[Part, ...]) -> int:
    """Guess the tokens of some parts; providers' own counts replace it as soon as they are known."""
    total = _TOKENS_A_MESSAGE
    for part in parts:
        if isinstance(part, BlobRef):
            total += _TOKENS_A_BLOB
        elif isinstance(part, ToolCall):
            total += (len(part.name) + len(part.arguments)) // _CHARS_A_TOKEN
        else:
            total += len(part.text) // _CHARS_A_TOKEN
    return total


class Entry(Record):
    """A message and the seq of the event that it came from; 0 for a summary."""

    seq: int
    message: Message


class ContextState(Record):
    """A context as snapshots keep it."""

    entries: tuple[Entry, ...]
    turns: tuple[int, ...]
    opened: ContextOpened | None
    counted: int
    suffix: int


class Context:
    """Grow the projection; `apply` is O(1) but for a compaction."""

    def __init__(self, state: ContextState | None = None) -> None:
        self._entries: list[Entry] = list(state.entries) if state else []
        self._turns: list[int] = list(state.turns) if state else []
        self.opened = state.opened if state else None
        self._counted = state.counted if state else 0
        self._suffix = state.suffix if state else 0
        self._owed: dict[str, str] = {}
        self._in_turn = False

    def state(self) -> ContextState:
        """Return what a snapshot keeps; only between turns."""
        return ContextState(
            entries=tuple(self._entries),
            turns=tuple(self._turns),
            opened=self.opened,
            counted=self._counted,
            suffix=self._suffix,
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return the messages in order."""
        return tuple([entry.message for entry in self._entries])

    @property
    def seqs(self) -> tuple[int, ...]:
        """Return the seq of each message's event."""
        return tuple([entry.seq for entry in self._entries])

    @property
    def turns(self) -> tuple[int, ...]:
        """Return the seqs of the messages that began a turn and are still sent."""
        return tuple(self._turns)

    @property
    def tokens(self) -> int:
        """Return the size of the next request: the provider's last count and an estimate of what came since."""
        return self._counted + self._suffix

    def apply(self, event: Event) -> None:
        """Take one more event into account."""
        match event.body:
            case MessageReceived() as body:
                if not self._in_turn:
                    self._turns.append(event.seq)
                ambient = (Text(text=body.ambient + "\n"),) if body.ambient else ()
                self._add(event.seq, Message(role="user", parts=ambient + body.parts))
            case TurnStarted():
                self._in_turn = True
            case TurnEnded():
                self._in_turn = False
                self._settle(event.seq)
            case ModelReplied() as body if body.purpose == "turn":
                self._replied(event.seq, body)
            case ToolEnded() as body if body.call_id in self._owed:
                del self._owed[body.call_id]
                self._append(event.seq, Message(role="tool", parts=body.parts, call_id=body.call_id, name=body.name))
            case ContextOpened() as body:
                self.opened = body
            case ContextCompacted() as body:
                self.compact(body)
            case _:
                return

    def _replied(self, seq: int, body: ModelReplied) -> None:
        self._add(seq, Message(role="assistant", parts=body.parts))
        self._owed = {part.id: part.name for part in body.parts if isinstance(part, ToolCall)}
        if body.usage.input:
            self._counted = body.usage.input + body.usage.output
            self._suffix = 0

    def _add(self, seq: int, message: Message) -> None:
        self._settle(seq)
        self._append(seq, message)

    def _append(self, seq: int, message: Message) -> None:
        self._entries.append(Entry(seq=seq, message=message))
        self._suffix += estimate(message.parts)

    def _settle(self, seq: int) -> None:
        """Answer calls that have no result, as after damage: providers refuse a history in which one is missing."""
        for call_id, name in self._owed.items():
            parts = (Text(text=_NO_RESULT),)
            self._append(seq, Message(role="tool", parts=parts, call_id=call_id, name=name))
        self._owed = {}

    def compact(self, body: ContextCompacted) -> None:
        """Shorten what is sent up to a seq."""
        if body.strategy == "mask":
            mask = (Text(text=body.summary),)
            self._entries = [_masked(entry, mask) if entry.seq <= body.upto else entry for entry in self._entries]
        else:
            kept = [entry for entry in self._entries if entry.seq > body.upto]
            while kept and kept[0].message.role == "tool":
                del kept[0]  # its call is gone: providers refuse a result without one
            summary = Message(role="user", parts=(Text(text=body.summary),))
            self._entries = [Entry(seq=0, message=summary), *kept] if body.summary else kept
            self._turns = [seq for seq in self._turns if seq > body.upto]
        self._counted = 0
        self._suffix = sum(estimate(entry.message.parts) for entry in self._entries)


def _masked(entry: Entry, mask: tuple[Part, ...]) -> Entry:
    message = entry.message
    if message.role != "tool" or estimate(message.parts) <= estimate(mask):
        return entry
    return Entry(seq=entry.seq, message=Message(role="tool", parts=mask, call_id=message.call_id, name=message.name))
