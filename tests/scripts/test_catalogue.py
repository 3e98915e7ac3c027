"""The catalogue is renewed from what others publish, in either of their formats."""

from __future__ import annotations

import json

from operant.ext.providers.catalogue import Catalogue, Stored
from scripts.catalogue import OURS, from_litellm, from_models_dev, main, merged, written

MODELS_DEV = {
    "anthropic": {
        "models": {
            "claude-new-9": {
                "tool_call": True,
                "reasoning": True,
                "limit": {"context": 300_000, "output": 50_000},
                "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
                "modalities": {"input": ["text", "image", "pdf"]},
            }
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
    "text-embedding-x": {"litellm_provider": "openai", "mode": "embedding", "max_input_tokens": 10},
}


def test_both_formats_become_entries() -> None:
    ours = json.loads(OURS.read_text())
    theirs = {**from_models_dev(MODELS_DEV), **from_litellm(LITELLM)}
    assert set(theirs) == {"anthropic/claude-new-9", "groq/new-model"}
    text = written(merged(ours, theirs, "2026-11"))
    import msgspec

    catalogue = Catalogue(msgspec.json.decode(text, type=Stored))
    claude, groq = catalogue.find("anthropic", "claude-new-9"), catalogue.find("groq", "new-model")
    assert claude is not None
    assert claude.price is not None
    assert (claude.window, claude.output, claude.price.cache_write, claude.files) == (300_000, 50_000, 3.75, True)
    assert groq is not None
    assert groq.price is not None
    assert (groq.price.input, groq.price.output, groq.images, groq.tools) == (0.05, 0.08, False, True)
    assert catalogue.find("openai", "gpt-5.1") is not None  # what the file does not have stays


def test_writing_is_stable() -> None:
    assert written(json.loads(OURS.read_text())) == OURS.read_text()


def test_without_a_file_it_says_how() -> None:
    assert main([]) == 2
