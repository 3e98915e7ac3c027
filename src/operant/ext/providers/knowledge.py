"""What is known of a provider's models: the settings over the catalogue, and a cautious guess under both."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from operant.ext.providers.catalogue import Catalogue
from operant.ext.providers.settings import ProviderSettings
from operant.sdk import Facts, Price


class Knowledge:
    """Answer for one provider; what was worked out once is kept."""

    def __init__(self, provider: str, own: ProviderSettings, catalogue: Catalogue, guess: Facts) -> None:
        self._provider = provider
        self._own = own
        self._catalogue = catalogue
        self._guess = guess
        self._kept: dict[str, Facts] = {}

    def facts(self, model: str) -> Facts:
        """Return what is known of a model."""
        kept = self._kept.get(model)
        if kept is None:
            kept = self._kept[model] = self._found(model)
        return kept

    def _found(self, model: str) -> Facts:
        facts = self._catalogue.find(self._provider, model) or self._guess
        if self._guess.price is not None:
            facts = replace(facts, price=self._guess.price)
        window = self._own.window.get(model) or self._own.window.get("*")
        price = self._own.prices.get(model) or self._own.prices.get("*")
        facts = replace(facts, window=window or facts.window, price=price or facts.price)
        better = self._own.models.get(model) or self._own.models.get("*")
        if better is None:
            return facts
        return replace(facts, **{name: value for name, value in asdict(better).items() if value is not None})


FREE = Price(input=0.0, output=0.0)
