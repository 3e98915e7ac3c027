"""Which tools fit some words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from operant.sdk import ToolSpec

_WORD = re.compile(r"[^\W_]+")
_NAME, _WORDS, _PARAMETER = 3.0, 1.0, 0.5
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)+$")


def ranked(query: str, specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Return the tools that have a word of the query, best first; a tool that is named outright comes before all."""
    wanted = _stems(query)
    named = set(query.replace(",", " ").split())
    weights = {spec.name: _weights(spec) for spec in specs}
    rarity = _rarity(weights.values(), len(specs))
    scores = {
        spec.name: sum(weights[spec.name].get(stem, 0.0) * rarity.get(stem, 0.0) for stem in wanted)
        + (1000.0 if spec.name in named else 0.0)
        for spec in specs
    }
    fitting = [spec for spec in specs if scores[spec.name] > 0]
    return sorted(fitting, key=lambda spec: (-scores[spec.name], spec.name))


def _rarity(all_weights: Iterable[dict[str, float]], total: int) -> dict[str, float]:
    """Weigh a word by how few tools have it."""
    counts = Counter(stem for weights in all_weights for stem in weights)
    return {stem: math.log(1 + total / count) for stem, count in counts.items()}


def _weights(spec: ToolSpec) -> dict[str, float]:
    weights: dict[str, float] = {}
    parameters = " ".join(spec.schema.get("properties") or ())
    for text, weight in ((parameters, _PARAMETER), (spec.description, _WORDS), (spec.name, _NAME)):
        for stem in _stems(text):
            weights[stem] = max(weight, weights.get(stem, 0.0))
    return weights


def _stems(text: str) -> set[str]:
    return {_ENDING.sub("", word) for word in _WORD.findall(text.casefold())}
