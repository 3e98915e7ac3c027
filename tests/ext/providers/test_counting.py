"""What chat servers say about tokens and money, each in its own place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from operant.ext.providers.chat import OpenAIChat
from operant.ext.providers.endpoint import Endpoint, Quirks
from operant.ext.providers.presets import preset
from operant.kit.sse import ServerEvent
from operant.sdk import Usage
from operant.sdk.testing.fakes import ManualClock
from operant.sdk.testing.store import MemoryStore

PLAIN = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}


def counted(said: dict[str, Any], quirks: Quirks | None = None) -> Usage:
    endpoint = Endpoint(name="there", base_url="http://127.0.0.1:9", quirks=quirks or Quirks())
    gathering = OpenAIChat(endpoint, MemoryStore(ManualClock())).gathering("one")
    choice = {"delta": {"content": "x"}, "finish_reason": "stop"}
    gathering.add(ServerEvent(data=msgspec.json.encode({"choices": [choice], "usage": said}).decode()))
    return gathering.reply().usage


@pytest.mark.parametrize(
    "said",
    [
        {**PLAIN, "prompt_tokens_details": {"cached_tokens": 800}},
        {**PLAIN, "cached_tokens": 800},
        {**PLAIN, "prompt_cache_hit_tokens": 800, "prompt_cache_miss_tokens": 200},
    ],
    ids=["openai", "moonshot", "deepseek"],
)
def test_what_came_from_the_cache_is_found_wherever_it_stands(said: dict[str, Any]) -> None:
    assert counted(said) == Usage(input=1_000, cached=800, output=100, calls=1)


def test_thinking_is_part_of_the_output_also_where_a_server_counts_it_beside() -> None:
    thought = {"completion_tokens_details": {"reasoning_tokens": 60}}
    inside, beside = counted({**PLAIN, **thought}), counted({**PLAIN, **thought, "total_tokens": 1_160})
    assert (inside.output, inside.reasoning) == (100, 60)
    assert (beside.output, beside.reasoning) == (160, 60)


def test_openrouter_and_xai_say_what_a_call_cost_and_others_mean_something_else() -> None:
    openrouter = preset("openrouter")
    assert openrouter is not None
    said = {**PLAIN, "cost": 0.0125, "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 500}}
    usage = counted(said, openrouter.quirks)
    assert (usage.usd, usage.cached, usage.cache_write) == (0.0125, 1, 500)
    assert counted(said).usd == 0.0
    assert counted({**PLAIN, "cost": {"total_cost": 3}}, openrouter.quirks).usd == 0.0
    assert counted({**PLAIN, "cost_in_usd_ticks": 232_856_000}).usd == pytest.approx(0.0232856)
