"""What is known of models: found under every name they go by, and what the settings say wins."""

from __future__ import annotations

import pytest

from operant.ext.providers.catalogue import Catalogue, Entry, Stored
from operant.ext.providers.knowledge import FREE, Knowledge
from operant.ext.providers.presets import PRESETS
from operant.ext.providers.settings import ModelSettings, ProviderSettings
from operant.sdk import Facts, Price

CATALOGUE = Catalogue()
GUESS = Facts(window=1000)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-sonnet-4-5"),
        ("anthropic", "claude-sonnet-4-5-20250929"),
        ("anthropic", "Claude-Sonnet-4-5-latest"),
        ("openrouter", "anthropic/claude-sonnet-4.5"),
        ("openrouter", "anthropic/claude-sonnet-4.5:beta"),
        ("bedrock", "anthropic.claude-sonnet-4-5"),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ],
)
def test_a_model_is_found_under_the_names_it_goes_by(provider: str, model: str) -> None:
    facts = CATALOGUE.find(provider, model)
    assert facts is not None
    assert facts.price == Price(input=3, output=15, cached=0.3, cache_write=3.75)
    assert facts.window == 200_000
    assert facts.images


def test_others_sell_the_same_model_at_their_own_price() -> None:
    groq, cerebras = CATALOGUE.find("groq", "openai/gpt-oss-120b"), CATALOGUE.find("cerebras", "gpt-oss-120b")
    assert groq is not None
    assert cerebras is not None
    assert groq.price != cerebras.price
    assert CATALOGUE.find("azure", "gpt-5.1") == CATALOGUE.find("openai", "gpt-5.1")
    assert CATALOGUE.find("nobody", "gpt-5.1") is None


def test_a_variant_that_is_free_costs_nothing() -> None:
    free, paid = CATALOGUE.find("openrouter", "z-ai/glm-4.5-air:free"), CATALOGUE.find("openrouter", "z-ai/glm-4.5-air")
    assert free is not None and free.price == FREE
    assert paid is not None and paid.price == Price(input=0.2, output=1.1, cached=0.03)


def test_a_date_may_be_a_month_and_the_model_that_is_there_itself_comes_first() -> None:
    assert CATALOGUE.find("xai", "grok-4-0709") == CATALOGUE.find("xai", "grok-4")
    assert CATALOGUE.find("mistral", "mistral-medium-2508") == CATALOGUE.find("mistral", "mistral-medium")
    assert CATALOGUE.find("moonshot", "kimi-k2-0905-preview") == CATALOGUE.find("moonshot", "kimi-k2-0905")
    own = Entry(window=1, input=7.0, out=8.0)
    dated = Catalogue(Stored(date="", models={"x/m-20260101": own, "x/m": Entry(window=2)}))
    assert [facts.window for name in ("m-20260101", "m") if (facts := dated.find("x", name))] == [1, 2]


def test_a_hundred_models_are_known_and_every_preset_s_own_is_one_of_them_or_local() -> None:
    assert len(CATALOGUE.stored.models) >= 100
    unknown = [one.name for one in PRESETS if one.model and CATALOGUE.find(one.name, one.model) is None]
    assert unknown == []


def test_settings_win_over_the_catalogue_and_the_catalogue_over_a_guess() -> None:
    own = ProviderSettings(
        window={"claude-sonnet-4-5": 9}, models={"claude-haiku-4-5": ModelSettings(images=False, output=7)}
    )
    known = Knowledge("anthropic", own, CATALOGUE, GUESS)
    assert known.facts("claude-sonnet-4-5").window == 9
    assert known.facts("claude-sonnet-4-5").output == 64_000
    assert (known.facts("claude-haiku-4-5").images, known.facts("claude-haiku-4-5").output) == (False, 7)
    assert known.facts("something-else") == GUESS


def test_what_runs_on_this_machine_costs_nothing() -> None:
    known = Knowledge("openai", ProviderSettings(), CATALOGUE, Facts(price=FREE))
    assert known.facts("gpt-5.1").price == FREE


def test_presets_cover_the_providers_that_people_use() -> None:
    names = {one.name for one in PRESETS}
    assert names >= {
        *("openai", "anthropic", "gemini", "openrouter", "groq", "mistral", "cerebras", "deepseek", "xai", "together"),
        *("fireworks", "nvidia", "zai", "moonshot", "qwen", "azure", "bedrock", "github"),
        *("ollama", "lmstudio", "llamacpp", "vllm"),
    }
    assert all(one.key or one.base_url.startswith("http://127.0.0.1") for one in PRESETS)
