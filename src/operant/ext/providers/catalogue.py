"""What is known about models: windows, limits, prices, abilities. Data, not code: `scripts/catalogue.py` renews it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

import msgspec

from operant.sdk import Facts, Price

FILE = "catalogue.json"
_DATED = re.compile(r"[-@](?:20\d{6}|\d{4}-\d{2}-\d{2}|latest|preview|exp)$")
_VERSION = re.compile(r"-v?\d+$")
_MAKERS = {"azure": "openai", "bedrock": "", "github": "", "openrouter": ""}
"""Providers that sell the models of others at the makers' prices; empty: the maker stands in the model's name."""
_PREFIXES = {"google": "gemini", "x-ai": "xai", "mistralai": "mistral", "moonshotai": "moonshot", "z-ai": "zai"}


class Entry(msgspec.Struct, omit_defaults=True):
    """A model. Prices are US dollars per million tokens; `can` has t(ools), i(mages), f(iles), r(easoning)."""

    window: int
    output: int = 0
    input: float | None = None
    out: float | None = None
    cached: float | None = None
    write: float | None = None
    can: str = "t"

    def facts(self) -> Facts:
        """Return it as the kernel knows it."""
        price = None
        if self.input is not None and self.out is not None:
            price = Price(input=self.input, output=self.out, cached=self.cached, cache_write=self.write)
        return Facts(
            window=self.window,
            output=self.output,
            price=price,
            tools="t" in self.can,
            images="i" in self.can,
            files="f" in self.can,
            reasoning="r" in self.can,
        )


class Stored(msgspec.Struct):
    """The file: when it was made, and entries by `provider/model`."""

    date: str
    models: dict[str, Entry]


class Catalogue:
    """Read when the first model is asked about."""

    def __init__(self, stored: Stored | None = None) -> None:
        self._stored = stored

    @property
    def stored(self) -> Stored:
        """Return the data."""
        if self._stored is None:
            data = files("operant.ext.providers").joinpath(FILE).read_bytes()
            self._stored = msgspec.json.decode(data, type=Stored)
        return self._stored

    def find(self, provider: str, model: str) -> Facts | None:
        """Return what is known of a provider's model; one of a date is the one without."""
        models = self.stored.models
        found = next((models[name] for name in _names(provider, model) if name in models), None)
        return found.facts() if found else None

    def search(self, words: Iterable[str], provider: str = "") -> Mapping[str, Facts]:
        """Return models whose name has all of some words."""
        wanted = [word.casefold() for word in words]
        return {
            name: entry.facts()
            for name, entry in sorted(self.stored.models.items())
            if all(word in name for word in wanted) and (not provider or name.startswith(f"{provider}/"))
        }


def _names(provider: str, model: str) -> Iterable[str]:
    """Yield the names under which a model may be in the catalogue."""
    plain = _plain(model)
    yield f"{provider}/{plain}"
    maker, _, rest = plain.rpartition("/")
    if provider in _MAKERS:
        own = _MAKERS[provider] or _PREFIXES.get(maker, maker) or plain.partition(".")[0]
        yield f"{own}/{rest or plain}"
        inner = plain.partition(".")[2]
        yield f"{own}/{inner}"
        yield f"{own}/{_VERSION.sub('', inner)}"


def _plain(model: str) -> str:
    """Return a name without date, variant and the dots that some write for dashes."""
    name = model.casefold().partition(":")[0]
    while (shorter := _DATED.sub("", name)) != name:
        name = shorter
    return re.sub(r"(claude-[a-z]+-\d)\.(\d)", r"\1-\2", name)
