"""Tokens, counted as four characters each, in no protocol's words."""

from __future__ import annotations

from typing import cast

import msgspec

from operant.sdk.testing.script import calls_of
from operant.sdk.testing.wires.wire import Answer, Json

_CHAT = {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"}


class Counted(msgspec.Struct):
    """What a call used: `input` has the cached ones in it, and `output` the reasoning ones.

    `own` is what a script says in a protocol's own words, to be sent as it is.
    """

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0
    own: Json = {}


def counted(answer: Answer) -> Counted:
    """Count a call; what the script says in the chat protocol's words goes first."""
    step = answer.step
    said = len(step.text) + sum(len(call.arguments) for call in calls_of(answer.chosen))
    reasoning = len(step.reasoning) // 4
    told = step.usage or {}
    input, output = told.get("prompt_tokens"), told.get("completion_tokens")
    return Counted(
        input=answer.request.size // 4 if input is None else input,
        output=max(1, said // 4) + reasoning if output is None else output,
        cached=_detail(told, "prompt_tokens_details", "cached_tokens", answer.shared // 4),
        reasoning=_detail(told, "completion_tokens_details", "reasoning_tokens", reasoning),
        own={name: value for name, value in told.items() if name not in _CHAT},
    )


def _detail(told: Json, name: str, field: str, otherwise: int) -> int:
    details = told.get(name)
    value = cast(Json, details).get(field) if isinstance(details, dict) else None
    return otherwise if value is None else int(value)
