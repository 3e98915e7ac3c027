"""Which models there are, which are used, and why."""

from __future__ import annotations

from operant.ext.providers.catalogue import Catalogue
from operant.ext.providers.choices import Choices
from operant.ext.providers.detect import Found
from operant.sdk import Facts, Model, ModelInfo, ModelList, ModelSearch, Principal

_MOST = 200


class Listing:
    """Answer the syscalls that list models."""

    def __init__(
        self,
        chain: tuple[str, ...],
        configured: tuple[str, ...],
        found: Found,
        providers: dict[str, Model],
        catalogue: Catalogue,
        choices: Choices,
    ) -> None:
        self._chain = chain
        self._configured = configured
        self._found = found
        self._providers = providers
        self._catalogue = catalogue
        self._choices = choices

    async def list(self, who: Principal, call: ModelList) -> tuple[ModelInfo, ...]:
        """List the models that are used when nobody names one, best first."""
        chosen = (await self._choices.said()).get("*", "")
        names = dict.fromkeys([chosen] if chosen else [])
        names |= dict.fromkeys(self._chain)
        return tuple(self._info(name, self._why(name, chosen)) for name in names)

    async def search(self, who: Principal, call: ModelSearch) -> tuple[ModelInfo, ...]:
        """Find models by words; those that can be used now come first."""
        found = self._catalogue.search(call.words.split())
        infos = [self._described(name, facts) for name, facts in found.items()]
        return tuple(sorted(infos, key=lambda one: (not one.ready, one.model))[:_MOST])

    def _why(self, name: str, chosen: str) -> str:
        if name == chosen:
            return f"Using {name}, because it was chosen for all agents (operant model use)."
        if name in self._configured:
            return f"Using {name}, because providers.{name.partition('/')[0]} says so."
        return self._found.sentence if name == self._found.chain[0] else ""

    def _info(self, name: str, why: str) -> ModelInfo:
        provider, _, model = name.partition("/")
        if provider not in self._providers:
            return ModelInfo(model=name, why=why, ready=False)
        return self._described(name, self._providers[provider].facts(model), why)

    def _described(self, name: str, facts: Facts, why: str = "") -> ModelInfo:
        able = {"tools": facts.tools, "images": facts.images, "files": facts.files, "reasoning": facts.reasoning}
        return ModelInfo(
            model=name,
            why=why,
            window=facts.window,
            output=facts.output,
            price=facts.price,
            can=tuple(word for word, can in able.items() if can),
            ready=name.partition("/")[0] in self._providers,
        )
