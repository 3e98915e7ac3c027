# shape: table
"""Every error that Operant raises on purpose.

OperantError
├── Refused          not allowed
│   ├── Denied           the caller lacks a capability
│   └── OverBudget       a purse is empty
├── Invalid          the request is wrong as it stands
│   └── NotFound         what it names does not exist
├── Unavailable      cannot be done now, may work later
│   ├── Missing          nothing is registered for a step that needs someone
│   ├── Uncertain        it may or may not have happened
│   ├── StoreStopped     the store accepts nothing until its cause is gone
│   └── ModelError       a model call failed; `kind` says how
├── Conflict         somebody else was faster
└── Broken           damage, or a fault of ours
    └── Damaged          stored bytes are not what was written

Foreign exceptions are translated by the adapter that meets them.
"""

from __future__ import annotations

from typing import ClassVar, Literal


class OperantError(Exception):
    """Carry a stable code, one sentence, and what to do about it."""

    code: ClassVar[str] = "error"

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint

    def line(self) -> str:
        """Say the error in one line for a person."""
        return f"{self.sentence} {self.hint}".rstrip()


class Refused(OperantError):
    """Refuse what is not allowed."""

    code = "refused"


class Denied(Refused):
    """Refuse a caller that lacks a capability."""

    code = "denied"


class OverBudget(Refused):
    """Refuse a call that its purse cannot pay."""

    code = "over_budget"


class Invalid(OperantError):
    """Reject a request that is wrong as it stands."""

    code = "invalid"


class NotFound(Invalid):
    """Reject a request for what does not exist."""

    code = "not_found"


class Unavailable(OperantError):
    """Report what cannot be done now and may work later."""

    code = "unavailable"


class Missing(Unavailable):
    """Name the hook or port that nobody has registered for."""

    code = "missing"


class Uncertain(Unavailable):
    """Report that something may or may not have happened, as when a platform did not answer."""

    code = "uncertain"


class StoreStopped(Unavailable):
    """Report that the store accepts nothing until its cause is gone."""

    code = "store_stopped"


ModelErrorKind = Literal[
    "auth",
    "bad_request",
    "content_filter",
    "context_overflow",
    "cut",
    "empty",
    "malformed",
    "not_found",
    "overloaded",
    "rate_limited",
    "server",
    "stalled",
    "timeout",
    "unreachable",
    "unsupported",
]

RETRIABLE: frozenset[ModelErrorKind] = frozenset(
    {"cut", "empty", "malformed", "overloaded", "rate_limited", "server", "stalled", "timeout", "unreachable"}
)


class ModelError(Unavailable):
    """Report a failed model call.

    `retry_after` is in seconds and None when the provider named no time.
    """

    code = "model_error"

    def __init__(
        self, kind: ModelErrorKind, sentence: str, hint: str = "", *, retry_after: float | None = None
    ) -> None:
        super().__init__(sentence, hint)
        self.kind: ModelErrorKind = kind
        self.retry_after = retry_after

    @property
    def retriable(self) -> bool:
        """Tell whether the same call may work a moment later."""
        return self.kind in RETRIABLE


class Conflict(OperantError):
    """Report that somebody else was faster; reload and decide anew."""

    code = "conflict"


class Broken(OperantError):
    """Report damage or a fault of ours."""

    code = "broken"


class Damaged(Broken):
    """Report stored bytes that are not what was written."""

    code = "damaged"


def by_code(code: str) -> type[OperantError]:
    """Return the class for a code that came over a wire; an unknown code is `Broken`."""
    pending: list[type[OperantError]] = [OperantError]
    while pending:
        found = pending.pop()
        if found.code == code and found is not ModelError:
            return found
        pending.extend(found.__subclasses__())
    return Broken
