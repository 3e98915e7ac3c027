"""A message between agents as it is kept, and the seal by which what arrives is known to be it."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Literal

import msgspec

from operant.kit.token import own_token
from operant.sdk import A2aKind, A2aMessage, Address, Part, Record, Unavailable

CHANNEL = "a2a"
"""Channel of sessions in which another agent is the one who writes; nobody is shown what is said there."""
MARK = "a2a:"
"""What the authors and external ids of these messages begin with, and nobody else's may."""
EXTENSION = "https://operant.invalid/a2a/between-homes/v1"
"""Names what our homes add to a message in its metadata; others leave it out, and ignore it."""
Piece = Literal["ask", "answer", "late"]
State = Literal["sent", "open", "answered", "late"]

_KEY = "seal"
_ABOUT_CHARS = 200


class Letter(Record):
    """A message: whom it is from and for, where it went, and what led to it.

    `origin` is the sender's session and `back` where its person is; `turn` is the turn that sent it. `chain` are the
    messages that led to this one, as `from>to`, itself the last. `seals` are by piece: of the message, of its answer.
    One that came over A2A has the id that its client gave it, and a `context`; `task` is the letter that it adds to.
    One that goes to another home has the id of its task there in `remote`, and what became of it in `result`.
    """

    id: str
    kind: A2aKind
    sender: str
    to: str
    session: str
    address: Address
    sent: int
    origin: str = ""
    back: Address | None = None
    turn: str = ""
    chain: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    about: str = ""
    deadline: int = 0
    state: State = "sent"
    seals: dict[str, str] = {}
    message_id: str = ""
    context: str = ""
    task: str = ""
    remote: str = ""
    result: str | None = None

    @property
    def away(self) -> bool:
        """Tell whether its receiver lives in another home."""
        return "@" in self.to

    def external_id(self, piece: Piece) -> str:
        """Return the id under which a piece is taken in once."""
        return f"{MARK}{self.id}:{piece}"

    def author(self, piece: Piece) -> str:
        """Return who a piece is from, as the history names them."""
        return MARK + (self.sender if piece == "ask" else self.to)

    def shown(self, answer: str = "") -> A2aMessage:
        """Return what is told of it."""
        return A2aMessage(
            id=self.id,
            kind=self.kind,
            sender=self.sender,
            to=self.to,
            session=self.session,
            sender_session=self.origin,
            state=self.state,
            sent=self.sent,
            deadline=self.deadline,
            text=self.about,
            answer=answer,
            hops=len(self.chain),
        )


def about(text: str) -> str:
    """Return the beginning of a text, in one line."""
    words = " ".join(text.split())
    return words if len(words) <= _ABOUT_CHARS else words[:_ABOUT_CHARS] + " …"


class Seals:
    """Seal messages with a key that only this extension has."""

    def __init__(self, state: Path) -> None:
        try:
            self._key = own_token(state / _KEY).encode()
        except OSError as error:
            raise Unavailable(f"{state / _KEY} cannot be written: {error.strerror}.") from error

    def seal(self, letter: Letter, piece: Piece, parts: tuple[Part, ...], labels: tuple[str, ...]) -> Letter:
        """Return the letter with the seal of a piece."""
        mark = self._mark(letter, piece, parts, labels)
        return msgspec.structs.replace(letter, seals={**letter.seals, piece: mark})

    def holds(self, letter: Letter, piece: Piece, parts: tuple[Part, ...], labels: tuple[str, ...]) -> bool:
        """Tell whether a piece is what was sealed."""
        return hmac.compare_digest(self._mark(letter, piece, parts, labels), letter.seals.get(piece, ""))

    def _mark(self, letter: Letter, piece: Piece, parts: tuple[Part, ...], labels: tuple[str, ...]) -> str:
        where = (letter.session, letter.address) if piece == "ask" else (letter.origin, letter.back)
        said = (letter.id, letter.kind, letter.sender, letter.to, letter.chain, where, piece, labels, parts)
        return hmac.digest(self._key, msgspec.json.encode(said), hashlib.sha256).hex()
