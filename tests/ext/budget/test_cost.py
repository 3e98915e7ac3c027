"""What calls cost, to the cent: the usage that providers report, at the prices of the catalogue."""

from __future__ import annotations

import pytest

from operant.ext.budget.cost import at_least, at_most
from operant.ext.providers.catalogue import Catalogue
from operant.sdk import Price, Rates, Usage

CATALOGUE = Catalogue()
CENTS = 1e-9
TIERED = Price(
    input=1.0, output=4.0, cached=0.1, above=1_000, beyond=Rates(input=2.0, output=6.0, cached=0.2, cache_write=2.5)
)


@pytest.mark.parametrize(
    ("provider", "model", "usage", "usd"),
    [
        # 10,000 fresh at 3, 80,000 read at 0.3, 10,000 written at 3.75, 2,000 out at 15
        (
            "anthropic",
            "claude-sonnet-4-6",
            Usage(input=100_000, cached=80_000, cache_write=10_000, output=2_000),
            0.1215,
        ),
        ("anthropic", "claude-haiku-4-5-20251001", Usage(input=1_000, output=1_000, reasoning=900), 0.006),
        # 20,000 fresh at 2.5, 80,000 read at 0.25, 3,000 out at 15; the thinking is part of them
        ("openai", "gpt-5.4", Usage(input=100_000, cached=80_000, output=3_000, reasoning=2_000), 0.115),
        # more than 272,000 in: 300,000 at 5, 1,000 at 22.5
        ("openai", "gpt-5.4-2026-03-05", Usage(input=300_000, output=1_000), 1.5225),
        ("gemini", "gemini-2.5-pro", Usage(input=200_000, output=1_000), 0.26),
        ("gemini", "gemini-2.5-pro", Usage(input=200_001, output=1_000), 0.5150025),
        ("deepseek", "deepseek-chat", Usage(input=100_000, cached=90_000, output=1_000), 0.00574),
        ("openrouter", "anthropic/claude-sonnet-4.6", Usage(input=1_000, output=1_000), 0.018),
        ("openrouter", "deepseek/deepseek-chat:free", Usage(input=1_000, output=1_000), 0.0),
        ("groq", "openai/gpt-oss-120b", Usage(input=10_000, cached=4_000, output=1_000), 0.0018),
    ],
)
def test_a_call_costs_what_its_provider_charges(provider: str, model: str, usage: Usage, usd: float) -> None:
    facts = CATALOGUE.find(provider, model)
    assert facts is not None
    assert facts.price is not None
    assert facts.price.of(usage) == pytest.approx(usd, abs=CENTS)


def test_anthropic_s_cache_is_a_tenth_to_read_and_a_quarter_more_to_write() -> None:
    claudes = [one for name, one in CATALOGUE.search(["claude"]).items() if "claude-3-haiku" not in name]
    for price in filter(None, (one.price for one in claudes)):
        assert price.cached == pytest.approx(price.input / 10)
        assert price.cache_write == pytest.approx(price.input * 1.25)


def test_a_cache_without_a_price_of_its_own_costs_like_input() -> None:
    assert Price(input=2.0, output=0.0).of(Usage(input=1_000_000, cached=400_000, cache_write=300_000)) == 2.0


def test_long_calls_cost_more_from_their_first_token_on() -> None:
    assert TIERED.of(Usage(input=1_000, cached=500, output=100)) == pytest.approx((500 + 50 + 400) / 1_000_000)
    assert TIERED.of(Usage(input=1_001, cached=500, output=100)) == pytest.approx((1_002 + 100 + 600) / 1_000_000)


def test_a_call_is_held_at_its_dearest_and_counts_at_least_its_question() -> None:
    assert at_most(2_000, 100, TIERED).usd == pytest.approx((2_000 * 2.5 + 600) / 1_000_000)
    assert at_least(2_000, TIERED).usd == pytest.approx(4_000 / 1_000_000)
    assert (at_least(2_000, None).usd, at_least(2_000, None).tokens) == (0.0, 2_000)
