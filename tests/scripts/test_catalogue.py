"""The catalogue is renewed from what others publish, in either of their formats."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from operant.ext.providers.catalogue import Catalogue, Stored
from operant.sdk import Price, Rates
from scripts.catalogue import OURS, fetched, from_litellm, from_models_dev, main, merged, written
from tests.kit.web import PUBLIC, pages, reply, site

MODELS_DEV = {
    "anthropic": {
        "models": {
            "claude-new-9": {
                "tool_call": True,
                "reasoning": True,
                "limit": {"context": 300_000, "output": 50_000},
                "cost": {
                    "input": 3,
                    "output": 15,
                    "cache_read": 0.3,
                    "cache_write": 3.75,
                    "context_over_200k": {"input": 6, "output": 22.5, "cache_read": 0.6, "cache_write": 7.5},
                },
                "modalities": {"input": ["text", "image", "pdf"]},
            },
            "claude-dated-20260101": {"limit": {"context": 1_000}, "cost": {"input": 1, "output": 2}},
            "claude-dated-20260901": {"limit": {"context": 2_000}, "cost": {"input": 0, "output": 0}},
        }
    },
    "somebody": {"models": {"x": {"limit": {"context": 1}}}},
}
LITELLM = {
    "sample_spec": {"mode": "chat", "litellm_provider": "one of many"},
    "groq/new-model": {
        "litellm_provider": "groq",
        "mode": "chat",
        "max_input_tokens": 131072,
        "max_output_tokens": 8192,
        "input_cost_per_token": 5e-08,
        "output_cost_per_token": 8e-08,
        "supports_function_calling": True,
    },
    "gpt-long": {
        "litellm_provider": "openai",
        "mode": "responses",
        "max_input_tokens": 1050000,
        "input_cost_per_token": 2.5e-06,
        "input_cost_per_token_above_272k_tokens": 5e-06,
        "output_cost_per_token": 1.5e-05,
        "output_cost_per_token_above_272k_tokens": 2.25e-05,
        "cache_read_input_token_cost": 2.5e-07,
        "cache_read_input_token_cost_above_272k_tokens": 5e-07,
    },
    "text-embedding-x": {"litellm_provider": "openai", "mode": "embedding", "max_input_tokens": 10},
}


def test_both_formats_become_entries() -> None:
    ours = json.loads(OURS.read_text())
    theirs = {**from_models_dev(MODELS_DEV), **from_litellm(LITELLM)}
    dated = {"anthropic/claude-dated-20260101", "anthropic/claude-dated-20260901"}
    assert set(theirs) == {"anthropic/claude-new-9", "groq/new-model", "openai/gpt-long", *dated}
    catalogue = read(merged(ours, theirs, "2026-11"))
    claude, groq = catalogue.find("anthropic", "claude-new-9"), catalogue.find("groq", "new-model")
    assert claude is not None
    assert claude.price is not None
    assert (claude.window, claude.output, claude.price.cache_write, claude.files) == (300_000, 50_000, 3.75, True)
    assert groq is not None
    assert groq.price is not None
    assert (groq.price.input, groq.price.output, groq.images, groq.tools) == (0.05, 0.08, False, True)
    assert catalogue.find("openai", "gpt-5.1") is not None  # what the file does not have stays


def test_long_calls_have_their_price_in_either_format() -> None:
    catalogue = read({"date": "", "models": {**from_models_dev(MODELS_DEV), **from_litellm(LITELLM)}})
    claude, gpt = catalogue.find("anthropic", "claude-new-9"), catalogue.find("openai", "gpt-long")
    assert claude is not None and claude.price is not None
    assert (claude.price.above, claude.price.beyond) == (
        200_000,
        Rates(input=6, output=22.5, cached=0.6, cache_write=7.5),
    )
    assert gpt is not None and gpt.price is not None
    assert (gpt.price.above, gpt.price.beyond) == (272_000, Rates(input=5, output=22.5, cached=0.5))


def test_a_model_with_a_date_is_known_without_it_by_its_latest() -> None:
    catalogue = read(merged({"date": "", "models": {}}, from_models_dev(MODELS_DEV), "2026-11"))
    plain, old = catalogue.find("anthropic", "claude-dated"), catalogue.find("anthropic", "claude-dated-20260101")
    assert plain is not None and old is not None
    assert (plain.window, plain.price) == (2_000, Price(input=0, output=0))  # what is free has a price: none
    assert (old.window, old.price) == (1_000, Price(input=1, output=2))


def read(catalogue: dict[str, Any]) -> Catalogue:
    return Catalogue(msgspec.json.decode(written(catalogue), type=Stored))


def test_writing_is_stable() -> None:
    assert written(json.loads(OURS.read_text())) == OURS.read_text()


def test_without_a_file_it_says_how() -> None:
    assert main([]) == 2


async def test_an_address_is_read_as_a_file_is() -> None:
    async with site(pages({"/api.json": reply(body=b'{"a": 1}')})) as here:
        base = f"http://{PUBLIC}:{here.port}"
        assert await fetched(f"{base}/api.json") == b'{"a": 1}'
        with pytest.raises(SystemExit, match="404"):
            await fetched(f"{base}/nothing")
