"""Where a context is cut, and how: pure functions of what is sent now, so that the same history is cut the same way.

A cut lies between two messages: at the beginning of a turn where that is enough, else between two steps of a turn,
never between a call and its result. The kernel puts it on record; nothing is deleted.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Literal

from operant.sdk import AssembleInput, BlobRef, Message, Part, Record, ToolCall

MASK = "[This old result was taken out to save room. It is on record and can be searched.]"
LEFT_OUT = "[Earlier conversation was left out to save room. It is on record and can be searched.]"

_KEEP = 0.3
"""Of the limit: how much stays as it is when what is older becomes a summary."""
_KEEP_WINDOW = 0.5
_ENOUGH = 0.8
"""Of the limit: what a mask must get below, or it would be followed by the next compaction soon after."""
_STEP = 0.2
"""Of the limit: the least that a mask must save; many small ones would spoil the provider's cache each time."""
_FULL = 0.9
"""Of the window: from here on a turn is not left to run into the provider's refusal."""
_SUMMARY = 0.15
_MASK_TURNS = 2
_CHARS_A_TOKEN = 4


class Cut(Record):
    """Send the messages before `index`, which are all events up to `upto`, in a shorter form."""

    index: int
    upto: int
    strategy: Literal["summary", "mask", "window"]


def urgent(input: AssembleInput) -> bool:
    """Tell whether the next request is, or is about to be, refused as too long."""
    return input.overflow or 0 < _FULL * input.window < input.tokens


def due(input: AssembleInput) -> bool:
    """Tell whether to look for a cut: between turns from the agent's own limit on, within one only when urgent."""
    return urgent(input) or (input.first and 0 < input.agent.context_ratio * input.window < input.tokens)


class View:
    """The messages with their weights, in the provider's tokens as far as those are known.

    `fixed` is the size of prompt and tools.
    """

    def __init__(self, input: AssembleInput, fixed: int) -> None:
        self._input = input
        self._urgent = urgent(input)
        guessed = [weight(message.parts) for message in input.messages]
        scale = min(4.0, max(1.0, input.tokens / max(1, sum(guessed) + fixed)))
        self._weights = [one * scale for one in guessed]
        self._before = [0.0, *accumulate(self._weights)]
        self._mask = weight_of_text(MASK) * scale
        self._fixed = fixed * scale
        limit = input.agent.context_ratio * input.window
        if input.overflow:  # the window is smaller than we were told, or the estimate too low
            limit = min(limit, input.tokens * 0.6)
        self.limit = max(limit, 1.0)

    @property
    def summary_chars(self) -> int:
        """Return how long a summary may be."""
        return max(400, int(self.limit * _SUMMARY * _CHARS_A_TOKEN))

    def plan(self) -> Cut | None:
        """Return the cut to make, if one is worth its price; never tears a call from its result."""
        wanted = self._input.agent.context_strategy
        if wanted != "window" and not self._input.overflow:
            enough = 1.0 if self._urgent else _ENOUGH
            masked = self.mask(enough if wanted == "compact" else 0.0)
            if masked is not None:
                return masked
        if wanted == "mask" and not self._urgent:
            return None
        cut = self.cut("summary", _KEEP) if wanted == "compact" else self.cut("window", _KEEP_WINDOW)
        if cut is None or (not self._urgent and self._before[cut.index] < _STEP * self.limit):
            return None
        return cut

    def cut(self, strategy: Literal["summary", "window"], keep: float) -> Cut | None:
        """Return the earliest cut after which at most `keep` of the limit stays, else the best there is."""
        room = max(0.0, keep * self.limit - (self._fixed if strategy == "window" else 0.0))
        sound = self._sound()
        turns = set(self._input.turns)
        starts = [index for index in sound if self._input.seqs[index] in turns]
        for index in starts:
            if self._after(index) <= room:
                return self._made(index, strategy)
        if starts and self._after(starts[-1]) + self._fixed <= _ENOUGH * self.limit:
            return self._made(starts[-1], strategy)
        return self._within(sound, starts, room, strategy)

    def mask(self, below: float) -> Cut | None:
        """Return a cut whose masked results save a large step, and with `below` get under that part of the limit."""
        for index in self._mask_places():
            upto = self._upto(index)
            saved = sum(
                self._weights[at] - self._mask
                for at, message in enumerate(self._input.messages[:index])
                if message.role == "tool" and self._weights[at] > self._mask
            )
            reaches = not below or self._input.tokens - saved <= below * self.limit
            if saved >= _STEP * self.limit and reaches:
                return Cut(index=index, upto=upto, strategy="mask")
        return None

    def _mask_places(self) -> list[int]:
        """Return where masking may end: before the last turns, else before the last steps."""
        sound = self._sound()
        turns = set(self._input.turns)
        starts = [index for index in sound if self._input.seqs[index] in turns]
        places = [starts[-_MASK_TURNS]] if len(starts) >= _MASK_TURNS else []
        recent = [index for index in sound if self._after(index) <= _KEEP * self.limit]
        return [*places, *recent[:1]]

    def _within(
        self, sound: list[int], starts: list[int], room: float, strategy: Literal["summary", "window"]
    ) -> Cut | None:
        """Cut between two steps where a single turn is too long to be left whole."""
        later = [index for index in sound if not starts or index >= starts[-1]]
        for index in later:
            if self._after(index) <= room:
                return self._made(index, strategy)
        return self._made(later[-1], strategy) if later else None

    def _made(self, index: int, strategy: Literal["summary", "window"]) -> Cut:
        return Cut(index=index, upto=self._upto(index), strategy=strategy)

    def _after(self, index: int) -> float:
        return self._before[-1] - self._before[index]

    def _upto(self, index: int) -> int:
        return max(self._input.seqs[:index], default=0)

    def _sound(self) -> list[int]:
        """Return the places at which nothing that belongs together is torn apart, and something new is cut off."""
        messages, seqs = self._input.messages, self._input.seqs
        last = {message.call_id: at for at, message in enumerate(messages) if message.role == "tool"}
        least = [*accumulate(reversed(seqs), min)][::-1]
        pending: set[str] = set()
        newest = 0
        places: list[int] = []
        for at, message in enumerate(messages):
            if newest and not pending and newest < least[at]:
                places.append(at)
            newest = max(newest, seqs[at])
            pending |= {call for call in _calls(message) if last.get(call, -1) > at}
            pending.discard(message.call_id)
        return places


def weight(parts: tuple[Part, ...]) -> int:
    """Guess the tokens of a message, as the kernel does where no provider has counted."""
    total = 4
    for part in parts:
        if isinstance(part, BlobRef):
            total += 1_000
        elif isinstance(part, ToolCall):
            total += (len(part.name) + len(part.arguments)) // _CHARS_A_TOKEN
        else:
            total += len(part.text) // _CHARS_A_TOKEN
    return total


def weight_of_text(text: str) -> int:
    """Guess the tokens of a message of one text."""
    return 4 + len(text) // _CHARS_A_TOKEN


def _calls(message: Message) -> list[str]:
    return [part.id for part in message.parts if isinstance(part, ToolCall)]
