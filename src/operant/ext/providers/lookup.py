"""What is known of a model, and finding one by words."""

from __future__ import annotations

from operant.ext.providers.catalogue import Catalogue
from operant.ext.providers.roster import Roster
from operant.sdk import Facts, Model, ModelGet, ModelInfo, ModelSearch, NotFound, Principal

_MOST = 200


class Lookup:
    """Know models of the providers that are here, and of the catalogue."""

    def __init__(self, providers: dict[str, Model], catalogue: Catalogue, roster: Roster) -> None:
        self._providers = providers
        self._catalogue = catalogue
        self._roster = roster

    async def get(self, who: Principal, call: ModelGet) -> ModelInfo:
        """Return what is known of one model."""
        provider, _, model = call.model.partition("/")
        known = model and (provider in self._providers or self._catalogue.find(provider, model))
        if not known:
            there = ", ".join(sorted(self._providers))
            raise NotFound(
                f"Nothing is known of a model {call.model!r}.", f"Name it as PROVIDER/MODEL; there are: {there}."
            )
        return self.about(call.model)

    async def search(self, who: Principal, call: ModelSearch) -> tuple[ModelInfo, ...]:
        """Find models by words; those that can be used now come first."""
        words = call.words.casefold().split()
        names = dict.fromkeys(self._catalogue.search(words))
        names |= {name: None for name in await self._roster.names() if all(word in name.casefold() for word in words)}
        infos = [self.about(name) for name in names]
        return tuple(sorted(infos, key=lambda one: (not one.ready, one.model))[:_MOST])

    def about(self, name: str, why: str = "") -> ModelInfo:
        """Describe a model; of one whose provider is not here, the catalogue tells."""
        provider, _, model = name.partition("/")
        here = self._providers.get(provider)
        facts = here.facts(model) if here else self._catalogue.find(provider, model)
        if facts is None:
            return ModelInfo(model=name, why=why, ready=False)
        return ModelInfo(
            model=name,
            why=why,
            window=facts.window,
            output=facts.output,
            price=facts.price,
            can=_able(facts),
            ready=here is not None,
        )


def _able(facts: Facts) -> tuple[str, ...]:
    able = {"tools": facts.tools, "images": facts.images, "files": facts.files, "reasoning": facts.reasoning}
    return tuple(word for word, can in able.items() if can)
