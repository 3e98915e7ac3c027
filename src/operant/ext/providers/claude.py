"""What the models of Anthropic want to be asked, by generation.

Up to 4.5 thinking has a budget of tokens; 4.6 can think as it sees fit and takes an effort; from 4.7 on that is the
only way, and a temperature is refused. Up to 4.8 no model thinks unasked; from 5 on they do, and two families always.
Other makers who speak this protocol know the budget.
"""

from __future__ import annotations

import re
from typing import Any

from operant.ext.providers.schemas import closed
from operant.sdk import Effort, Facts, Parameters

_AFTER = re.compile(r"(?:opus|sonnet|haiku|fable|mythos)-(\d+)(?:[-.](\d{1,2})(?!\d))?")
_BEFORE = re.compile(r"claude-(?:v|instant-)?(\d)(?:[-.](\d{1,2})(?!\d))?")
_ALWAYS = ("fable", "mythos")
_NEWEST = (99, 0)
_OUTPUT = 16_384
"""How much a model may say of which nothing is known; the protocol demands a number."""
_BUDGETS: dict[Effort, int] = {"low": 2_048, "medium": 8_192, "high": 24_576}
_LEAST_BUDGET = 1_024


def generation(model: str) -> tuple[int, int] | None:
    """Return which generation a model is of, None for one of another maker."""
    name = model.casefold()
    found = _AFTER.search(name) or _BEFORE.search(name)
    if found:
        return int(found[1]), int(found[2] or 0)
    return _NEWEST if "claude" in name else None


class Limits:
    """How one model is asked; `thought` tells whether it may be asked to think with a budget."""

    def __init__(self, model: str, facts: Facts, *, thought: bool) -> None:
        self._generation = generation(model)
        self._always = any(name in model.casefold() for name in _ALWAYS)
        self._facts = facts
        self._thought = thought

    def fields(self, asked: Parameters) -> dict[str, Any]:
        """Return the fields that may differ from request to request; they stand behind the messages."""
        most = self._most(asked)
        fields: dict[str, Any] = {"max_tokens": most}
        thinking = self._thinking(asked.effort, most)
        if thinking:
            fields["thinking"] = thinking
        thinks = thinking.get("type") in ("enabled", "adaptive")
        if asked.temperature is not None and not thinks and not self._is_from(4, 7):
            fields["temperature"] = min(asked.temperature, 1.0)
        output: dict[str, Any] = {}
        if effort := self._effort(asked.effort):
            output["effort"] = effort
        if asked.schema is not None:
            output["format"] = {"type": "json_schema", "schema": closed(asked.schema)}
        return {**fields, "output_config": output} if output else fields

    def _most(self, asked: Parameters) -> int:
        known = self._facts.output
        most = asked.max_output_tokens or known or min(_OUTPUT, max(1, self._facts.window // 4))
        return min(most, known) if known else most

    def _is_from(self, major: int, minor: int) -> bool:
        return self._generation is not None and self._generation >= (major, minor)

    def _thinking(self, effort: Effort | None, most: int) -> dict[str, Any]:
        if effort is None:
            return {}
        if effort == "none":
            return self._without()
        if self._is_from(4, 6):
            # From 4.7 on the thoughts are hidden unless one asks for their summary.
            return {"type": "adaptive", "display": "summarized"}
        able = self._facts.reasoning if self._generation is None else self._is_from(3, 7)
        budget = min(_BUDGETS[effort], most // 2)
        if not able or not self._thought or budget < _LEAST_BUDGET:
            return {}
        return {"type": "enabled", "budget_tokens": budget}

    def _without(self) -> dict[str, Any]:
        """Return how not to think; who does not think unasked need not be told."""
        if self._generation is None:
            return {"type": "disabled"} if self._facts.reasoning else {}
        return {"type": "disabled"} if self._is_from(5, 0) and not self._always else {}

    def _effort(self, effort: Effort | None) -> str:
        if effort is None or not self._is_from(4, 6):
            return ""
        if effort == "none":
            return "low" if self._always else ""
        return effort
