"""What the log says of a parent and of a child: who asked, where words come from, how it ended."""

from __future__ import annotations

from operant.sdk import (
    Address,
    BlobRef,
    Ending,
    Event,
    MessageQueued,
    MessageReceived,
    Record,
    Store,
    ToolEnded,
    TurnEnded,
    Usage,
    text_of,
)

_PAGE = 1_000
_OWN = ("malformed", "agent:", "restart:")
"""Labels that mark one event and say nothing about where words come from."""


class Origin(Record):
    """Whose turn it is, where that person is, and the labels of all that its model may have read."""

    author: str = ""
    address: Address | None = None
    labels: tuple[str, ...] = ()


class Outcome(Record):
    """How a child ended, and what it gives back."""

    reason: Ending = "done"
    text: str = ""
    artifacts: tuple[BlobRef, ...] = ()
    labels: tuple[str, ...] = ()
    steps: int = 0
    usage: Usage = Usage()


async def origin_of(store: Store, session: str, turn: str) -> Origin:
    """Read a session up to now."""
    author, address, labels, after = "", None, set[str](), 0
    while events := await store.events(session, after, _PAGE):
        after = events[-1].seq
        for event in events:
            labels |= labels_of(event)
            if isinstance(event.body, MessageReceived) and event.turn == turn:
                author, address = event.body.author or author, event.body.address or address
    return Origin(author=author, address=address, labels=tuple(sorted(labels)))


def labels_of(event: Event) -> set[str]:
    """Return the labels that an event brings into a session."""
    body = event.body
    if not isinstance(body, MessageReceived | ToolEnded):
        return set()
    return {label for label in body.labels if not label.startswith(_OWN)}


class Reading:
    """Take a child's events in order until its first turn has ended."""

    def __init__(self) -> None:
        self.ended: Outcome | None = None
        self._text = ""
        self._files: list[BlobRef] = []
        self._labels: set[str] = set()

    def take(self, event: Event) -> None:
        """Take one more event into account."""
        self._labels |= labels_of(event)
        body = event.body
        if isinstance(body, MessageQueued):
            self._text = text_of(body.parts) or self._text
            self._files += [part for part in body.parts if isinstance(part, BlobRef)]
        elif isinstance(body, TurnEnded):
            self.ended = Outcome(
                reason=body.reason,
                text=self._text or body.sentence,
                artifacts=tuple(self._files),
                labels=tuple(sorted(self._labels)),
                steps=body.steps,
                usage=body.usage,
            )
